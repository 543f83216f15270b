/**
 * The program of a rendering thread: it renders one job at a time, and answers before it takes the next.
 *
 * Invariants: the thread holds nothing but its libraries. Its environment is empty, it reads no file and no
 * network, and a job leaves nothing behind for the next one, so the pool may end it at any moment.
 */
import { parentPort } from 'node:worker_threads';
import { changedRuns } from './changed-words.ts';
import { colourRuns } from './code.ts';
import { renderMarkdown } from './markdown.ts';
import type { Rendered, RenderingJob, ThreadMessage } from './rendering-job.ts';
import { fitsInto, LONG_PAGE_ROOM, weighMarkup } from './weight.ts';

const port = parentPort;
if (port === null) throw new TypeError('This module runs as a thread of the rendering pool');

function render(job: RenderingJob): Rendered {
  switch (job.kind) {
    case 'markdown': {
      const markup = renderMarkdown(job.text, job.place);
      if (!fitsInto(weighMarkup(markup), LONG_PAGE_ROOM)) throw new RangeError('No page holds the rendered text');
      return markup;
    }
    case 'colours':
      return colourRuns(job.text, job.language);
    case 'changes':
      return changedRuns(job.files);
  }
}

const answer = (message: ThreadMessage, moved: readonly ArrayBuffer[] = []): void => port.postMessage(message, moved);

port.on('message', (job: RenderingJob) => {
  try {
    const rendered = render(job);
    answer({ rendered }, typeof rendered === 'string' ? [] : [rendered.buffer]);
  } catch {
    answer({ failed: true });
  }
});
answer({ ready: true });
