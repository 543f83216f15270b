/**
 * Makes room on the cache's disk for what is needed now.
 *
 * Invariants: what is given up can be made or fetched again, the cheapest first.
 */
/** Does work that writes so many bytes; again, up to twice, when the disk was full and there is room now. */
export type WithRoom = <Result>(bytes: number, work: () => Promise<Result>) => Promise<Result>;

export interface DiskRoomOptions {
  readonly entries: () => {
    readonly sizeBytes: number;
    evict(bytesMax: number): void;
    readonly disk: { settled(): Promise<void> };
  };
  /** Frees room on the disk that holds nothing but kept answers. */
  readonly makeRoom: () => Promise<void>;
}

/** The work must not itself be work on the entries' disk, which is waited for. */
export function createDiskRoom({ entries, makeRoom }: DiskRoomOptions): WithRoom {
  return async (bytes, work) => {
    try {
      return await work().catch(async (error: unknown) => {
        if (!isDiskFull(error)) throw error;
        // An answer is made again more cheaply than a repository is fetched.
        await makeRoom();
        return work();
      });
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      // Other repositories can be fetched again, so they make room for the one that is needed now.
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
