/**
 * What every pictured page must hold besides its looks: the strict policy, and its size.
 *
 * Invariants: a page above its bound, a policy that allows inline code and a break of the policy fail the run.
 */
import type { Page } from 'playwright-core';
import { PAGE_BYTES_MAX } from '../../apps/website/layout/weight.ts';
import { LONG_PAGE_BYTES_MAX } from '../../apps/website/rendering/weight.ts';
import type { Shot } from './shots.ts';

const STRICT = /default-src 'none'/;
const LAX = /unsafe-|\*|data:/;
/** What shows a file or a diff; a search shows some lines of many. */
const LONG = /^(?!.*class="box found").*class="(lines|diff|prose)\b/s;

export interface Weights {
  readonly faults: readonly string[];
  /** Returns the heaviest pages with their bytes, the heaviest first. */
  heaviest(count: number): readonly string[];
  /** Begins to look at what the page loads; to be called before its first address. */
  watch(shot: Shot, page: Page): void;
  /** Resolves when everything that was seen is measured. */
  done(): Promise<void>;
}

export function createWeights(): Weights {
  const faults: string[] = [];
  const bytesByName = new Map<string, number>();
  const measuring: Promise<void>[] = [];
  return {
    faults,
    heaviest: (count) =>
      [...bytesByName]
        .toSorted(([, a], [, b]) => b - a)
        .slice(0, count)
        .map(([name, bytes]) => `${name} ${bytes} bytes`),
    watch: ({ name }, page) => {
      page.on('console', (message) => {
        if (message.text().includes('Content Security Policy')) faults.push(`${name}: ${message.text()}`);
      });
      page.on('response', (response) => {
        if (response.request().resourceType() !== 'document' || response.status() === 303) return;
        const policy = response.headers()['content-security-policy'] ?? '';
        if (!STRICT.test(policy) || LAX.test(policy)) faults.push(`${name}: the policy is ${policy}`);
        const measure = async (): Promise<void> => {
          const body = await response.body();
          const { length } = body;
          bytesByName.set(name, Math.max(length, bytesByName.get(name) ?? 0));
          const most = LONG.test(body.toString()) ? LONG_PAGE_BYTES_MAX : PAGE_BYTES_MAX;
          if (length > most) faults.push(`${name}: ${length} bytes`);
        };
        // A page that was left before its end has no body any more.
        measuring.push(measure().catch(() => undefined));
      });
    },
    done: async () => void (await Promise.all(measuring)),
  };
}
