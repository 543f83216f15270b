/**
 * What `npm run clients` and the programs that drive a client say to each other. A driver is a small program in the
 * language of its client: it reads one request as JSON from its standard input, does it with the client, and writes one
 * answer as the last line of its standard output.
 *
 * Invariants: the token reaches a driver by its standard input only, so no list of processes shows it.
 */
import { z } from 'zod';

export type DriverRequest =
  | { readonly operation: 'version' }
  | (Place & { readonly operation: 'clone' /** The whole history if absent. */; readonly depth?: number })
  | (Place & { readonly operation: 'fetch' | 'unshallow' })
  | (Place & {
      readonly operation: 'push';
      /** The form that git writes: `refs/heads/a:refs/heads/a`, with a `+` to force, without a source to delete. */
      readonly refspec: string;
    });

/** A repository of the server, who asks, and the folder of the clone. */
export interface Place {
  readonly url: string;
  readonly username: string;
  readonly token: string;
  readonly folder: string;
}

const ANSWER = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('ok'), version: z.string().optional() }),
  /** What the client shows its user. */
  z.object({ outcome: z.literal('refused'), words: z.string() }),
  /** The client does not offer this. */
  z.object({ outcome: z.literal('cannot') }),
]);

export type DriverAnswer = z.output<typeof ANSWER>;

/** Returns the answer of a driver that ended; throws with what it wrote when it gave none. */
export function parseAnswer(ended: {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}): DriverAnswer {
  const last = ended.stdout.trimEnd().split('\n').at(-1) ?? '';
  if (ended.code === 0 && last.startsWith('{')) return ANSWER.parse(JSON.parse(last));
  const written = `${ended.stderr}\n${ended.stdout}`.trim();
  throw new Error(`the driver ended with ${ended.code ?? 'a signal'}: ${written.slice(-2_000)}`);
}
