/** The rules of read leases (core/runtime/read-leases.ts), each with the test that fails without it. */
import type { Mutation } from './mutation.ts';

const RULES = 'core/runtime/read-leases.ts';
const SETTLED_LOG = 'core/runtime/settled-log.ts';
const TABLE = 'adapters/postgres/migrations/025-read-leases.ts';

const SIMULATION = {
  test: 'test/core/runtime/read-leases.test.ts',
  red: 'never miss an acknowledged append',
};
const POSTGRES = 'test/adapters/postgres/read-leases.test.ts';

export const READ_LEASE_MUTATIONS: readonly Mutation[] = [
  {
    without: 'the wait of an append for the holders of leases',
    file: SETTLED_LOG,
    text: 'await leases.whenSettled(result.position);',
    by: 'leases.settled();',
    ...SIMULATION,
  },
  {
    without: 'the wait of subscriptions until an event is settled',
    file: SETTLED_LOG,
    text: 'if (wait === null) return options',
    by: 'if (wait !== undefined) return options',
    ...SIMULATION,
  },
  {
    without: 'the wait of a read of the head until it is settled',
    file: SETTLED_LOG,
    text: 'await unsettled(head);',
    by: 'leases.hear(head, null);',
    ...SIMULATION,
  },
  {
    without: 'the head behind an insert or a renewal of a lease',
    file: RULES,
    text: 'this.hear(position, null);\n    // A row',
    by: '// A row',
    ...SIMULATION,
  },
  {
    without: 'the span of a lease from before it was asked for',
    file: RULES,
    text: '{ monotonicMs: asked.monotonicMs + lastsMs, wallMs: asked.wallMs + lastsMs }',
    by: '{ monotonicMs: clock.monotonicMs() + lastsMs, wallMs: clock.wallMs() + lastsMs }',
    ...SIMULATION,
  },
  {
    without: 'the full span that an append waits for a silent holder',
    file: RULES,
    text: 'map(({ spanMs }) => spanMs)',
    by: 'map(({ spanMs }) => spanMs / 2)',
    ...SIMULATION,
  },
  {
    without: 'a new timer when the rows of leases are read after the append',
    file: RULES,
    text: '      }\n      this.#expireInTime();\n    };',
    by: '      }\n    };',
    test: SIMULATION.test,
    red: 'wait for a silent holder no longer than its span',
  },
  {
    without: 'the end of a lease whose row is gone',
    file: RULES,
    text: '(await table.renew(this.#epoch))',
    by: '(await table.renew(this.#epoch), true)',
    ...SIMULATION,
  },
  {
    without: 'the wait until what was heard of is applied',
    file: 'core/runtime/log-follower.ts',
    text: 'return this.#applied >= heard ? this.#applied : null;',
    by: 'return heard >= LOG_START ? this.#applied : null;',
    ...SIMULATION,
  },
  {
    without: 'the lock of the appends around the insert of a lease',
    file: TABLE,
    text: '  PERFORM pg_advisory_xact_lock(8317987319222330741);\n  INSERT INTO read_leases',
    by: '  INSERT INTO read_leases',
    test: POSTGRES,
    red: 'is inserted only between two appends',
  },
  {
    without: 'the wait of servers that know no leases',
    file: TABLE,
    text: 'PERFORM pg_sleep(longest_ms / 1000.0);',
    by: 'PERFORM pg_sleep(0);',
    test: POSTGRES,
    red: 'ends before an append of an older server is answered',
  },
  {
    without: 'the comparison of renewals before a lease is removed',
    file: 'adapters/postgres/read-leases.ts',
    text: ' AND renewals = ${renewals}`',
    by: '`',
    test: POSTGRES,
    red: 'is removed only as it was seen',
  },
];
