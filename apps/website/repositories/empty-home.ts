/** The home of a repository whose default branch does not exist: what to type, ready to copy. */
import type { SiteAnswer } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { buttonForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { repositoryAddress } from './addresses.ts';
import { cloneUrl, refPicker, showRepositoryPage } from './frame.ts';
import type { PageRequest } from './page-request.ts';
import { shownName } from './shown-text.ts';

export async function emptyHome(asked: PageRequest): Promise<SiteAnswer> {
  const { visit, repository } = asked;
  const { defaultBranch, owned } = repository;
  const url = cloneUrl(asked);
  // Without a chosen default branch, whatever is pushed first becomes it. The local branch may have another name.
  const pushed = owned.initialDefaultBranch === null ? 'HEAD' : `HEAD:${shellWord(defaultBranch)}`;
  const hasRefs = repository.entity.state.refs.size > 0;
  const content = html`${
    hasRefs &&
    html`<p class="note">The default branch, ${shownName(defaultBranch)}, does not exist. Choose another in the settings, or look at what there is:</p>
<div class="row">${await refPicker(asked, 'tree', defaultBranch, [])}</div>`
  }<section class="box"><header><h2>${
    hasRefs ? 'Push the default branch' : 'Push an existing project'
  }</h2></header><div class="stack part">${copyBox(`git remote add origin ${url}`, 'the command that adds the repository as a remote')}${copyBox(
    `git push -u origin ${pushed}`,
    'the command that pushes',
  )}<p class="soft">Git asks for a username, which may be any, and a password, which is an access token: <a href="/access-tokens/create">create one</a> if you have none.</p></div></section>
<section class="box"><header><h2>Or start a new project</h2></header><div class="stack part">${copyBox(
    `git clone ${url} && cd ${owned.name}`,
    'the command that clones',
  )}${copyBox(
    `echo "# ${owned.name}" > README.md && git add . && git commit -m "First commit" && git push -u origin ${pushed}`,
    'the commands that push a first commit',
  )}</div></section>${
    !hasRefs &&
    html`<section class="box"><header><h2>Or begin here</h2></header><div class="stack part"><p>The first commit can be made of files that you write or upload.</p><div class="row"><a class="button" href="${repositoryAddress(repository)}/create">Create a file</a><a class="button" href="${repositoryAddress(repository)}/upload">Upload files</a></div></div></section>
<section class="box"><header><h2>Or add a README here</h2></header><div class="stack part"><p>A first commit with a README that holds the name and the description.</p>${buttonForm(
      { action: `${repositoryAddress(repository)}/readme`, csrf: visit.csrf() },
      html`<button class="button">Add a README</button>`,
    )}</div></section>`
  }`;
  return showRepositoryPage(asked, { title: null, tab: 'Code', isHome: true }, content);
}

/** A branch may be called `$(rm -rf .)`: what is copied into a shell must be that name and nothing else. */
export function shellWord(text: string): string {
  return /^[\w./@%+=:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
