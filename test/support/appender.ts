/**
 * A node that appends without end, as a process of its own that tests can stop in the middle.
 *
 * `node appender.ts <connection string>` prints a line for each append that was answered, and ends with its input.
 */
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { newEvent, newStream } from './events.ts';
import { keepLog } from './log.ts';

const [connectionString = ''] = process.argv.slice(2);
const store = createPostgresEventStore({ connectionString, log: keepLog() });
process.stdin.resume().once('end', () => process.exit(0));
for (;;) {
  // Several at once and of some size, so that it is often in the middle of a call.
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
