/** What the verification must find and must not take, each guard with the test that fails without it. */
import type { Mutation } from './mutation.ts';

const VERIFYING = 'core/use-cases/verifying';
const WALKING = `${VERIFYING}/verify-in-background.ts`;
const WALKED = 'test/core/use-cases/verifying/verify-in-background.test.ts';
const PACE = { file: `${VERIFYING}/pace.ts`, test: 'test/core/use-cases/verifying/pace.test.ts' };
const CURSORS = {
  file: 'adapters/postgres/verification-walks.ts',
  test: 'test/adapters/postgres/verification-walks.test.ts',
};
const OUTAGES = {
  file: 'apps/front-door/texts/outages.ts',
  test: 'test/apps/front-door/texts/outages.test.ts',
  red: 'that only the operator can end is no outage to wait for',
};

export const VERIFICATION_MUTATIONS: readonly Mutation[] = [
  {
    without: 'verification: the bound of a hundredth of a core',
    ...PACE,
    text: '(done.computedMs - rested.computedMs) / CORE_SHARE',
    by: 'done.computedMs - rested.computedMs + 0 * CORE_SHARE',
    red: 'is one hundredth of a core',
  },
  {
    without: 'verification: the bound of a megabyte a second',
    ...PACE,
    text: '(result.sizeBytes / BYTES_PER_SECOND) * 1_000,',
    by: '0 * result.sizeBytes * BYTES_PER_SECOND,',
    red: 'is a megabyte a second',
  },
  {
    without: 'verification: the bytes of the layers in that bound',
    file: `${VERIFYING}/verify-layers.ts`,
    text: 'sizeBytes: end - start',
    by: 'sizeBytes: end - end',
    test: WALKED,
    red: 'reads at most a megabyte of the layers a second',
  },
  {
    without: 'verification: the walk of one process at a time',
    ...CURSORS,
    text: 'OR w.held_until < clock_timestamp()',
    by: 'OR w.held_until > clock_timestamp()',
    red: 'goes on where it was saved, while its process holds it',
  },
  {
    without: 'verification: the end of a walk that another process took',
    ...CURSORS,
    text: 'WHERE walk = $1 AND process = $2',
    by: 'WHERE walk = $1 AND $2::uuid IS NOT NULL',
    red: 'is taken by another process ten minutes after its process last kept it',
  },
  {
    without: 'verification: the rounds of the week',
    file: WALKING,
    text: 'week: 5 * DAY_MS',
    by: 'week: 6 * DAY_MS',
    test: WALKED,
    red: 'begins a round five days after the one before',
  },
  {
    without: 'verification: the rounds of the month',
    file: WALKING,
    text: 'month: 25 * DAY_MS',
    by: 'month: 26 * DAY_MS',
    test: WALKED,
    red: 'and that of the bytes after 25 days',
  },
  {
    without: 'verification: one line and one count of an account',
    file: WALKING,
    text: 'told.has(account) || told.size === TOLD_ACCOUNTS_MAX',
    by: 'told.size === TOLD_ACCOUNTS_MAX',
    test: WALKED,
    red: 'tells one line and one count of an account',
  },
  {
    without: 'verification: the turns of the two walks',
    file: WALKING,
    text: '(await save(cursor)) && clock.monotonicMs() < untilMs;',
    by: '(await save(cursor)) && untilMs > 0;',
    test: WALKED,
    red: 'takes turns',
  },
  {
    without: 'verification: the way on of one walk where the other one fails',
    file: WALKING,
    text: 'failed ??= { error, atMs: clock.monotonicMs() };',
    by: 'throw error;',
    test: WALKED,
    red: 'goes on with one round where the other one meets an outage',
  },
  {
    without: 'verification: the last entry of an account, which the log lost after it was read',
    file: `${VERIFYING}/verify-account.ts`,
    text: 'await reportChange({ events, digest }, account, last, fault);',
    by: 'if (tree.size < 0) await reportChange({ events, digest }, account, last, fault);',
    test: WALKED,
    red: 'finds what the log loses after a page of it was read',
  },
  {
    without: 'verification: the place before the first entry of a page',
    file: `${VERIFYING}/verify-page.ts`,
    text: 'from: Math.max(place.sequence - 1, 0)',
    by: 'from: place.sequence',
    test: WALKED,
    red: 'finds an entry that was taken out',
  },
  {
    without: 'verification: the way on behind a row that holds no event',
    file: `${VERIFYING}/verify-page.ts`,
    text: 'return { next: unreadable.position, sizeBytes };',
    by: 'return { next: null, sizeBytes };',
    test: WALKED,
    red: 'finds a row that holds no event any more, and goes on behind it',
  },
  {
    without: 'verification: the checkpoint that the log contradicts',
    file: `${VERIFYING}/verify-account.ts`,
    text: 'if (last === null || last.continued || last.size > head.size) return;',
    by: 'if (last === null || last.size !== head.size + 1) return;',
    test: WALKED,
    red: 'finds a checkpoint that the log contradicts',
  },
  {
    without: 'verification: the outages that are no faults',
    file: `${VERIFYING}/changed.ts`,
    text: 'if (!isChanged(error)) throw error;',
    by: 'if (!(error instanceof Error)) throw error;',
    test: WALKED,
    red: 'takes a store that is away for an outage',
  },
  {
    without: 'verification: an outage while an event is checked',
    file: `${VERIFYING}/check-event.ts`,
    text: 'error instanceof EventStoreError && !isChanged(error)',
    by: 'error instanceof EventStoreError && isChanged(null)',
    test: 'test/core/use-cases/verifying/check-event.test.ts',
    red: 'rejects where the log is away',
  },
  {
    without: 'verification: an outage while a changed entry is looked at',
    file: `${VERIFYING}/verify-trees.ts`,
    text: 'if (!isChanged(error)) throw error;',
    by: 'if (!(error instanceof Error)) throw error;',
    test: WALKED,
    red: 'goes on with one round where the other one meets an outage, and tells no fault',
  },
  {
    without: 'verification: the status of a command that found a fault',
    file: 'apps/admin/verify-once.ts',
    text: 'status: told.length === 0 ? 0 : 1,',
    by: 'status: 0,',
    test: 'test/scenarios/changed-log.test.ts',
    red: 'is told once for each account by a round of the verification in the background',
  },
  {
    without: 'verification: the fault of a diverged log',
    ...OUTAGES,
    text: "'log-diverged': DIVERGED,",
    by: "'log-diverged': BEHIND,",
  },
  {
    without: 'verification: the count of a diverged log',
    file: 'apps/front-door/fault-log.ts',
    text: "if (error instanceof EventStoreError && error.code === 'log-diverged') onDiverged();",
    by: '',
    test: OUTAGES.test,
    red: 'has the same status, message and Retry-After over REST and over Git',
  },
  {
    without: 'verification: the fault of a contradicted checkpoint',
    ...OUTAGES,
    text: "'log-contradicts-checkpoint': LOST_TAIL,",
    by: "'log-contradicts-checkpoint': BEHIND,",
  },
];
