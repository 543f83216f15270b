/**
 * What was read, summed by account, node and minute, on `transfer-<account>-<node>`.
 *
 * Must stay true: operational, pruned after retention; a crash may lose up to a minute of it (audit, Reads in
 * the record).
 */
import { type DomainEvent, type EventKinds, OPERATIONAL_V1 } from '../kernel/decider.ts';

export type TransferRecorded = DomainEvent<
  'TransferRecorded',
  {
    /** RFC 3339, the minute's start: the calendar month it counts in. */
    readonly minute: string;
    /** Bytes that git fetches and contents sent. */
    readonly sent_bytes: number;
    readonly by_token: readonly {
      readonly token_id: string;
      readonly repository_id: string;
      readonly reads: number;
      readonly sent_bytes: number;
    }[];
  }
>;

export const transferEventKinds: EventKinds<TransferRecorded> = { TransferRecorded: OPERATIONAL_V1 };
