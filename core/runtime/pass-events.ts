/**
 * A policy that passes every event once, in the order of the log, and that may wait at one of them.
 *
 * Invariants: the checkpoint never lies beyond an event that was not passed, nor inside an append. An event may be
 * passed twice, so `pass` is idempotent. Any number of nodes may run the policy.
 */
import { LOG_START, type RecordedEvent } from '../kernel/envelope.ts';
import { wholeAppends } from '../kernel/whole-appends.ts';
import type { EventStore } from '../ports/event-store.ts';
import type { PolicyMarks } from '../ports/policy-marks.ts';
import type { ReadMark } from '../ports/read-mark.ts';
import { lastRecordOf, markAfter, provenMark } from './read-mark.ts';

export interface PassingContext {
  readonly events: Pick<EventStore, 'head' | 'readAll' | 'readStream'>;
  readonly marks: PolicyMarks;
}

/**
 * A small page, because each event may be almost as large as an append may be. Internal: the rest is read in further
 * pages.
 */
const PAGE_EVENTS_MAX = 100;

/**
 * Reads the log from where the policy stopped, up to the first event for which `pass` resolves false, or to the head.
 * Rejects if the log or the marks cannot be reached, or if `pass` rejects. Resolves early when the signal is aborted.
 */
export async function passEvents(
  context: PassingContext,
  policy: string,
  pass: (event: RecordedEvent) => Promise<boolean>,
  signal: { readonly aborted: boolean },
): Promise<void> {
  const { events, marks } = context;
  const head = await events.head();
  let mark = await startOf(context, policy);
  let position = mark?.position ?? LOG_START;
  while (position < head && !signal.aborted) {
    const page = await events.readAll(position, PAGE_EVENTS_MAX);
    const passed = await passAll(page, pass);
    const last = passed.at(-1);
    if (last === undefined) return;
    ({ position } = last);
    mark = markAfter(mark, position, lastRecordOf(passed));
    if (mark !== null) await marks.save(policy, mark);
    if (passed.length < page.length) return;
  }
}

/** Returns where the policy stopped, if this is the same log; null for the log's start. */
async function startOf({ events, marks }: PassingContext, policy: string): Promise<ReadMark | null> {
  const mark = await marks.read(policy);
  return mark === null ? null : provenMark(events, mark);
}

/** Passes events in order and returns those that are done. They are whole appends. */
async function passAll(
  page: readonly RecordedEvent[],
  pass: (event: RecordedEvent) => Promise<boolean>,
): Promise<readonly RecordedEvent[]> {
  const passed: RecordedEvent[] = [];
  for (const append of wholeAppends(page)) {
    for (const event of append) if (!(await pass(event))) return passed;
    passed.push(...append);
  }
  return passed;
}
