/**
 * Declares trusted what the rendering threads made.
 *
 * Invariants: only the output of the renderer passes here. It escapes all text and passes an allow-list
 * (apps/website/rendering).
 */
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { refOfAnyAddress } from '../../../core/use-cases/reading/ref-path.ts';
import { encodeName } from '../../front-door/request-target.ts';
import { type Html, trustedHtml } from '../layout/html.ts';
import type { LineWindow } from '../rendering/line-window.ts';
import type { CodeJob } from '../rendering/rendering-job.ts';
import { repositoryAddress, shownAddress } from './addresses.ts';
import type { PageRequest } from './page-request.ts';

export interface TextFile {
  readonly id: ObjectId;
  readonly text: string;
  readonly ref: string;
  /** The path of the file. */
  readonly names: readonly Uint8Array[];
}

/** Null if the text is too long or took too long. */
export async function renderedMarkdown(asked: PageRequest, { id, text, ref, names }: TextFile): Promise<Html | null> {
  const { context, visit, repository } = asked;
  const folder = names.slice(0, -1);
  const at = refOfAnyAddress(repository, ref).split('/').map(encodeURIComponent).join('/');
  const home = repositoryAddress(repository);
  const place = { blobs: `${home}/blob/${at}`, raw: `${home}/raw/${at}`, folder: folder.map(encodeName).join('/') };
  const query = shownAddress(repository, '');
  const markup = await context.renderer.markdown(visit.person.account, { id, text, place: { ...place, query } });
  return markup === null ? null : trustedHtml(markup);
}

export interface ShownLines extends LineWindow {
  readonly lines: readonly Html[];
}

/** Returns some lines with their colours. Null if that took too long. */
export async function renderedLines(
  { context, visit }: PageRequest,
  source: CodeJob & { readonly id: ObjectId },
): Promise<ShownLines | null> {
  const rendered = await context.renderer.code(visit.person.account, source);
  return rendered === null ? null : { ...rendered, lines: rendered.lines.map(trustedHtml) };
}
