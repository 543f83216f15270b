/** Downloads of the files of a ref or of one folder, as git archive makes them. */
import { decodeUtf8 } from '../../../core/git/utf8.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { ArchiveFormat } from '../../../core/ports/object-database.ts';
import { readArchive } from '../../../core/use-cases/reading/read-archive.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { attachment } from '../../front-door/disposition.ts';
import { REFUSALS, refusalText } from '../../front-door/texts/refusals.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { type Html, html, NOTHING } from '../layout/html.ts';
import { notFound, showProblem } from '../layout/problems.ts';
import { textBytes } from '../layout/weight.ts';
import { namesOfField, pathField, repositoryAddress, segmentsOf, shownAddress } from './addresses.ts';
import { SPARE_LINK_BYTES_MAX } from './limits.ts';
import { refusedMaking, showMade } from './metered-stream.ts';
import { type PageRequest, showRefusal } from './page-request.ts';
import { shownName } from './shown-text.ts';

type Names = readonly Uint8Array[];

const FORMATS: readonly ArchiveFormat[] = ['zip', 'tar.gz'];
const TYPES: Readonly<Record<ArchiveFormat, string>> = { zip: 'application/zip', 'tar.gz': 'application/gzip' };

function archiveAddress(repository: FoundRepository, ref: string, folder: Names, format: ArchiveFormat): string {
  const encoded = ref.split('/').map(encodeURIComponent).join('/');
  const query: Readonly<Record<string, string>> = folder.length === 0 ? {} : { path: pathField(folder) };
  return shownAddress(repository, `${repositoryAddress(repository)}/archive/${encoded}.${format}`, query);
}

/** The links to the archives of what a page shows, after a label; nothing where a name is very long. */
export function downloadLinks(
  { repository }: Pick<PageRequest, 'repository'>,
  { ref, folder = [], label = '' }: { readonly ref: string; readonly folder?: Names; readonly label?: string },
): Html {
  const nameBytes = folder.reduce((sum, name) => sum + name.length, textBytes(ref));
  if (nameBytes > SPARE_LINK_BYTES_MAX) return NOTHING;
  const of = shownName(folder.at(-1) ?? ref);
  const links = FORMATS.map(
    (format) =>
      html` <a href="${archiveAddress(repository, ref, folder, format)}" rel="nofollow" download><span class="unseen">Download ${of} as </span>${format}</a>`,
  );
  return html`<span class="downloads soft">${label}${links}</span>`;
}

export async function showArchive(asked: PageRequest): Promise<SiteAnswer> {
  const { context, repository, visit } = asked;
  const named = segmentsOf(visit.target)?.map(decodeUtf8) ?? [null];
  const [, ref = '', format] = named.includes(null) ? [] : (/^(.+)\.(tar\.gz|zip)$/su.exec(named.join('/')) ?? []);
  const path = visit.url.searchParams.get('path') ?? '';
  const folder = path === '' ? [] : namesOfField(path);
  if ((format !== 'zip' && format !== 'tar.gz') || folder === null) return notFound(visit);
  const refused = await refusedMaking(asked);
  if (refused !== null) return refused;
  const { account } = visit.person;
  const archive = await readArchive(context, repository, { account, ref, folder, format, signal: visit.signal });
  if ('refused' in archive) {
    return (
      waiting(asked, archive.refused) ??
      showRefusal(asked, archive.refused, (id) => archiveAddress(repository, id, folder, format))
    );
  }
  return showMade(asked, archive, {
    'content-type': TYPES[format],
    'content-disposition': attachment(`${archive.name}.${format}`),
  });
}

/** The page for who has to wait until another archive is made; null for other refusals. */
function waiting({ visit }: PageRequest, refusal: Refusal): SiteAnswer | null {
  if (!('waitSeconds' in refusal)) return null;
  const headers = { 'retry-after': String(refusal.waitSeconds) };
  const { status } = REFUSALS[refusal.code];
  return showProblem(visit, { status, title: 'Try again in a moment', text: `${refusalText(refusal)}.`, headers });
}
