/**
 * A rendering thread that never answers a text which says `endless`, takes its time for `slow`, runs out of memory for
 * `huge`, and dies for `exit`.
 */
import { parentPort } from 'node:worker_threads';
import type { RenderingJob } from '../../../apps/website/rendering/rendering-job.ts';

/** How long a slow text takes. */
const SLOW_MS = 900;

parentPort?.on('message', ({ text }: Extract<RenderingJob, { readonly text: string }>) => {
  while (text === 'endless');
  const since = performance.now();
  while (text.startsWith('slow') && performance.now() - since < SLOW_MS);
  const held: number[][] = [];
  while (text === 'huge') held.push(Array.from({ length: 100_000 }, (_, n) => n + 0.5));
  if (text === 'exit') process.exit(3);
  parentPort?.postMessage(text === 'throw' ? { failed: true } : { rendered: `<p>${text.slice(0, 100)}</p>` });
});
parentPort?.postMessage({ ready: true });
