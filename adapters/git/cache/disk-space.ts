/**
 * Frees space on the cache's disk when work finds it full.
 *
 * Invariants: only what can be made or fetched again is removed, the cheapest first.
 */
/** Does work that writes this many bytes. When the disk is full, frees space and does it again, up to twice. */
export type WithDiskSpace = <Result>(bytes: number, work: () => Promise<Result>) => Promise<Result>;

export interface DiskSpaceOptions {
  readonly entries: () => {
    readonly sizeBytes: number;
    evict(bytesMax: number): void;
    readonly disk: { settled(): Promise<void> };
  };
  /** Removes kept answers. */
  readonly freeDisk: () => Promise<void>;
}

/** The work must not itself be work on the entries' disk, which is waited for. */
export function createDiskSpace({ entries, freeDisk }: DiskSpaceOptions): WithDiskSpace {
  return async (bytes, work) => {
    try {
      return await work().catch(async (error: unknown) => {
        if (!isDiskFull(error)) throw error;
        // An answer is made again more cheaply than a repository is fetched.
        await freeDisk();
        return work();
      });
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      // Other repositories can be fetched again, so they leave for the one that is needed now.
      const { sizeBytes, disk } = entries();
      entries().evict(Math.max(0, sizeBytes / 2 - bytes));
      await disk.settled();
      return work();
    }
  };
}

/** Whether an error, or one of its causes, is a full disk. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')) return true;
  return isDiskFull(error.cause);
}
