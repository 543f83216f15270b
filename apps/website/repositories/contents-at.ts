/** What is at a path, for pages that show it or lead on to the page that does. */
import type { Refusal } from '../../../core/kernel/refusal.ts';
import { type Contents, readContents } from '../../../core/use-cases/reading/read-contents.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import type { PageRequest } from './page-request.ts';

const NO_ENTRIES = { offset: 0, limit: 0 };

/** A file that is too large for a page comes without its bytes, and a folder without its entries. */
export async function contentsAt(
  { context, repository }: PageRequest,
  { ref, names }: RefPath,
): Promise<Contents | { readonly refused: Refusal }> {
  const wanted = { ref, path: { names, folder: false }, entries: NO_ENTRIES, judgeStreamed: false };
  const contents = await readContents(context, repository, wanted);
  // Nobody reads the stream, and open objects are never evicted.
  if ('content' in contents && contents.content.kind === 'streamed') contents.content.close();
  return contents;
}
