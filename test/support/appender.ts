/**
 * A program that appends events until it is stopped, run as a process of its own that tests can kill mid-append.
 *
 * `node appender.ts <connection string>` prints one line after each batch of completed appends, and exits when its
 * input ends.
 */
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { newEvent, newStream } from './events.ts';
import { keepLog } from './log.ts';

const [connectionString = ''] = process.argv.slice(2);
const store = createPostgresEventStore({ connectionString, log: keepLog() });
process.stdin.resume().once('end', () => process.exit(0));
for (;;) {
  // Eight large appends immediately make it likely that a kill hits the middle of a call.
  const appends = Array.from({ length: 8 }, () =>
    store.append({
      stream: newStream(),
      expected: 'none',
      events: [newEvent({ data: { padding: 'x'.repeat(20_000) } })],
    }),
  );
  await Promise.all(appends);
  console.log('appended');
}
