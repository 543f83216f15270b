/**
 * How far policies have followed the log: a checkpoint for each, beside what they do.
 *
 * Must stay true: a mark names an event of the log, so that a policy can tell whether the log it reads is the one it
 * read before.
 */
import type { ReadMark } from './vault-references.ts';

export interface PolicyMarks {
  /** Null before the first. */
  read(policy: string): Promise<ReadMark | null>;
  /** It may go back: another log was found. */
  save(policy: string, mark: ReadMark): Promise<void>;
}
