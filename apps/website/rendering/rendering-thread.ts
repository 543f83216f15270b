/**
 * The program of a rendering thread: it renders one job at a time, and answers before it takes the next.
 *
 * Invariants: the thread holds nothing but its libraries. Its environment is empty, it reads no file and no
 * network, and a job leaves nothing behind for the next one, so the pool may end it at any moment.
 */
import { parentPort } from 'node:worker_threads';
import { codeLines } from './code.ts';
import { renderMarkdown } from './markdown.ts';
import type { Rendered, RenderingJob, ThreadMessage } from './rendering-job.ts';

const port = parentPort;
if (port === null) throw new TypeError('This module runs as a thread of the rendering pool');

function render(job: RenderingJob): Rendered {
  switch (job.kind) {
    case 'markdown':
      return renderMarkdown(job.text, job.place);
    case 'code':
      return codeLines(job);
  }
}

const answer = (message: ThreadMessage): void => port.postMessage(message);

port.on('message', (job: RenderingJob) => {
  try {
    answer({ rendered: render(job) });
  } catch {
    answer({ failed: true });
  }
});
answer({ ready: true });
