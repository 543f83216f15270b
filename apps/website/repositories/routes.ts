/**
 * The pages of repositories.
 *
 * Invariants: an account's name is the first segment of these paths, so every other first segment of the website is
 * a reserved name (core/account/names.ts).
 */
import type { FormOptions, Room, Site } from '../layout/room.ts';
import { showAccess } from './access.ts';
import { showActivity } from './activity.ts';
import { showArchive } from './archive.ts';
import { showBlame } from './blame.ts';
import { showBlob } from './blob.ts';
import { showBranches } from './branches.ts';
import { showChanges } from './changes.ts';
import { orFromCloneAddress } from './clone-address.ts';
import { showCommit } from './commit.ts';
import { showCommitText } from './commit-text.ts';
import { showCommits, showDefaultCommits } from './commits.ts';
import { askToCompare, showComparison } from './compare.ts';
import { deletedRoutes } from './deleted.ts';
import { saveEdit, showEdit } from './edit.ts';
import { showFiles } from './files.ts';
import { notFoundHere } from './frame.ts';
import { showHome } from './home.ts';
import { UPLOAD_FORM_BYTES_MAX, WRITING_FORM_BYTES_MAX } from './limits.ts';
import { showList } from './list.ts';
import { showMoments } from './moments.ts';
import { saveMove, saveRemove, showMove, showRemove } from './move-file.ts';
import { beginWithReadme, createFromForm, openNew } from './new.ts';
import { saveCreate, saveUpload, showCreate, showUpload } from './new-file.ts';
import { askToDeleteRef, createBranch, createTagFromForm, deleteRef, showNewBranch, showNewTag } from './new-ref.ts';
import { onPlace, onRepository, onRepositoryAsOf } from './page-request.ts';
import { showPreview } from './preview.ts';
import { askToPurge, purgeFromForm } from './purge.ts';
import { showRaw } from './raw.ts';
import { showRefs } from './refs.ts';
import { askToRestore, restoreFromForm } from './restore.ts';
import { showSearch } from './search.ts';
import { removeRepository, renameFromForm, saveSettings, showSettings } from './settings.ts';
import { switchRef } from './switch.ts';
import { showTags } from './tags.ts';
import { showTree } from './tree.ts';

const OF_TEXT: FormOptions = { bytesMax: WRITING_FORM_BYTES_MAX, parts: true, keeps: 'text' };
const OF_FILES: FormOptions = { bytesMax: UPLOAD_FORM_BYTES_MAX, parts: true, keeps: 'message' };
const OF_PATH: FormOptions = { bytesMax: WRITING_FORM_BYTES_MAX, parts: true, keeps: 'message' };

export const repositoriesRoom: Room = {
  navigation: ({ username }) => ({ label: 'Repositories', path: `/${username}`, also: ['/new'] }),
  routes(site) {
    const { context } = site;
    site.page('/new', (visit) => openNew(context, visit));
    site.form('/new', (visit, fields) => createFromForm(context, visit, fields));
    site.page('/:username', (visit) => showList(context, visit));
    site.page('/:username/:repository', orFromCloneAddress(onRepositoryAsOf(context, showHome)));
    site.form('/:username/:repository/readme', onRepository(context, beginWithReadme));
    site.page('/:username/:repository/switch', onRepositoryAsOf(context, switchRef));
    site.page('/:username/:repository/refs', onRepositoryAsOf(context, showRefs));
    site.page('/:username/:repository/files', onRepositoryAsOf(context, showFiles));
    site.page('/:username/:repository/search', onRepositoryAsOf(context, showSearch));
    site.page('/:username/:repository/tree/*', onPlace(context, showTree));
    site.page('/:username/:repository/blob/*', onPlace(context, showBlob));
    site.page('/:username/:repository/blame/*', onPlace(context, showBlame));
    site.page('/:username/:repository/raw/*', onPlace(context, showRaw));
    site.page('/:username/:repository/commits', onRepositoryAsOf(context, showDefaultCommits));
    site.page('/:username/:repository/commits/*', onPlace(context, showCommits));
    site.page('/:username/:repository/branches', onRepositoryAsOf(context, showBranches));
    site.page('/:username/:repository/compare', onRepositoryAsOf(context, askToCompare));
    site.page('/:username/:repository/compare/*', onRepositoryAsOf(context, showComparison));
    site.page('/:username/:repository/tags', onRepositoryAsOf(context, showTags));
    site.page('/:username/:repository/activity', onRepository(context, showActivity));
    site.page('/:username/:repository/moments', onRepository(context, showMoments));
    site.page('/:username/:repository/changes', onRepository(context, showChanges));
    site.page('/:username/:repository/access', onRepository(context, showAccess));
    site.page('/:username/:repository/commit/:id', onRepositoryAsOf(context, showCommit));
    for (const form of ['diff', 'patch'] as const) {
      site.page(`/:username/:repository/commit/:id.${form}`, onRepositoryAsOf(context, showCommitText(form)));
    }
    site.page('/:username/:repository/archive/*', onRepositoryAsOf(context, showArchive));
    site.page(
      '/:username/:repository/settings',
      onRepository(context, async (asked) => showSettings(asked)),
    );
    site.form('/:username/:repository/settings', onRepository(context, saveSettings));
    site.form('/:username/:repository/rename', onRepository(context, renameFromForm));
    site.formBeyondQuota('/:username/:repository/delete', onRepository(context, removeRepository));
    site.page('/:username/:repository/restore', onRepository(context, askToRestore));
    site.form('/:username/:repository/restore', onRepository(context, restoreFromForm));
    site.page('/:username/:repository/purge', onRepository(context, askToPurge));
    site.formBeyondQuota('/:username/:repository/purge', onRepository(context, purgeFromForm));
    writingRoutes(site);
    refRoutes(site);
    deletedRoutes(site);
  },
  async missing(context, visit) {
    const [, username, repository] = /^\/([\w.-]+)\/([\w.-]+)\/./.exec(visit.url.pathname) ?? [];
    if (username === undefined || repository === undefined) return null;
    const show = onRepository(context, async (asked) => notFoundHere(asked));
    return show({ ...visit, params: { username, repository } });
  },
};

/** The forms that create and delete branches and tags. */
function refRoutes(site: Site): void {
  const { context } = site;
  const home = '/:username/:repository';
  site.page(`${home}/new-branch`, onRepository(context, showNewBranch));
  site.form(`${home}/new-branch`, onRepository(context, createBranch));
  site.page(`${home}/new-tag`, onRepository(context, showNewTag));
  site.form(`${home}/new-tag`, onRepository(context, createTagFromForm), OF_PATH);
  site.page(`${home}/delete-ref`, onRepository(context, askToDeleteRef));
  site.formBeyondQuota(`${home}/delete-ref`, onRepository(context, deleteRef));
}

/** The forms that write a commit. The addresses without a ref are for the default branch, which need not exist. */
function writingRoutes(site: Site): void {
  const { context } = site;
  const home = '/:username/:repository';
  site.page(`${home}/edit/*`, onPlace(context, showEdit));
  site.form(`${home}/edit`, onRepository(context, saveEdit), OF_TEXT);
  site.page(
    `${home}/create`,
    onRepository(context, (asked) => showCreate(asked, null)),
  );
  site.page(`${home}/create/*`, onPlace(context, showCreate));
  site.form(`${home}/create`, onRepository(context, saveCreate), OF_TEXT);
  site.formBeyondQuota(`${home}/preview`, onRepository(context, showPreview), OF_TEXT);
  site.page(
    `${home}/upload`,
    onRepository(context, (asked) => showUpload(asked, null)),
  );
  site.page(`${home}/upload/*`, onPlace(context, showUpload));
  site.form(`${home}/upload`, onRepository(context, saveUpload), OF_FILES);
  site.page(`${home}/move/*`, onPlace(context, showMove));
  site.form(`${home}/move`, onRepository(context, saveMove), OF_PATH);
  site.page(`${home}/remove/*`, onPlace(context, showRemove));
  site.form(`${home}/remove`, onRepository(context, saveRemove), OF_PATH);
}
