/**
 * Loaded into a server that is measured (`node --import`): it tells the parent process how long turns of the event loop
 * took.
 *
 * Invariants: it adds nothing to the server but a short timer, and does not keep the process running.
 */
import { isMainThread } from 'node:worker_threads';
import { watchTurns } from './turns.ts';

if (isMainThread && process.send !== undefined) {
  const tell = process.send.bind(process);
  const turns = watchTurns();
  // Whoever asks gets the longest turn since the last question.
  process.on('message', () => tell(turns.takeLongestMs()));
  process.channel?.unref();
}
