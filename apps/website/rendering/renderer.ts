/**
 * Markdown and coloured code for pages, from memory where they were rendered before.
 *
 * Invariants: the key of a kept text names all that its markup depends on. What may not or cannot be rendered is
 * null, and its page shows the plain text.
 */
import { LRUCache } from 'lru-cache';
import { KIB, MIB } from '../../../core/kernel/byte-units.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { countedCache } from '../../../core/kernel/shown-caches.ts';
import type { ChangedText } from './changed-words.ts';
import type { MarkdownPlace, Rendered, RenderingJob } from './rendering-job.ts';
import { createRenderingPool, type RenderingPool } from './rendering-pool.ts';
import type { Runs } from './runs.ts';

/** Markdown and code that pages show rendered, in UTF-16 code units; longer texts are shown plain. */
export const RENDERED_MARKDOWN_LENGTH_MAX = MIB;
export const RENDERED_CODE_LENGTH_MAX = 512 * KIB;
/** The memory for rendered texts. Internal: what is not kept is rendered again. */
export const RENDERED_CACHE_BYTES_MAX = 32 * MIB;

export interface RenderedText {
  /** Names the text: the id of its blob. */
  readonly id: ObjectId;
  readonly text: string;
}

export interface Renderer {
  /** Null if the text is too long or could not be rendered in time. `person` takes turns with others. */
  markdown(person: string, source: RenderedText & { readonly place: MarkdownPlace }): Promise<string | null>;
  /** Null if the text is too long or could not be coloured in time. */
  colours(person: string, source: RenderedText & { readonly language: string }): Promise<Runs | null>;
  /**
   * The colours of the lines of a diff, and the words that changed in them. `key` names the diff. Null if they are too
   * long or that took too long.
   */
  changes(person: string, diff: { readonly key: string; readonly files: readonly ChangedText[] }): Promise<Runs | null>;
  close(): Promise<void>;
}

/**
 * A text that could not be rendered is not tried again for a while: it would take a thread for its whole time.
 * Internal: a forgotten text is rendered again.
 */
const FAILED_MAX = 1_000;

const FAILED_SPAN_MS = 10 * 60_000;

export function createRenderer(pool: RenderingPool = createRenderingPool()): Renderer {
  const kept = countedCache(
    'rendered_pages',
    'memory',
    new LRUCache<string, Rendered>({
      maxSize: RENDERED_CACHE_BYTES_MAX,
      sizeCalculation: (rendered, key) => 2 * key.length + bytesOf(rendered),
    }),
  );
  const failed = countedCache(
    'unrendered_pages',
    'entries',
    new LRUCache<string, true>({ max: FAILED_MAX, ttl: FAILED_SPAN_MS }),
  );
  const underWay = new Map<string, Promise<Rendered | null>>();
  const start = async (person: string, key: string, job: RenderingJob): Promise<Rendered | null> => {
    const outcome = await pool.run(person, job);
    underWay.delete(key);
    if ('rendered' in outcome) kept.set(key, outcome.rendered);
    else if (outcome.failed !== 'busy') failed.set(key, true);
    return 'rendered' in outcome ? outcome.rendered : null;
  };
  const render = async (person: string, key: string, job: RenderingJob): Promise<Rendered | null> => {
    if (failed.get(key) === true) return null;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const running = underWay.get(key) ?? start(person, key, job);
    underWay.set(key, running);
    return running;
  };
  return {
    async markdown(person, { id, text, place }) {
      if (text.length > RENDERED_MARKDOWN_LENGTH_MAX) return null;
      const key = JSON.stringify([
        'markdown',
        id,
        text.length,
        place.blobs,
        place.raw,
        place.folder,
        place.query ?? '',
      ]);
      const rendered = await render(person, key, { kind: 'markdown', text, place });
      return typeof rendered === 'string' ? rendered : null;
    },
    async colours(person, { id, text, language }) {
      if (text.length > RENDERED_CODE_LENGTH_MAX) return null;
      const key = JSON.stringify(['colours', id, text.length, language]);
      const rendered = await render(person, key, { kind: 'colours', text, language });
      return typeof rendered === 'object' ? rendered : null;
    },
    async changes(person, { key: name, files }) {
      const length = files.reduce((sum, { text }) => sum + text.length, 0);
      if (length > RENDERED_CODE_LENGTH_MAX) return null;
      const key = JSON.stringify(['changes', name, length]);
      const rendered = await render(person, key, { kind: 'changes', files });
      return typeof rendered === 'object' ? rendered : null;
    },
    close: () => pool.close(),
  };
}

function bytesOf(rendered: Rendered): number {
  return typeof rendered === 'string' ? 2 * rendered.length : rendered.byteLength;
}
