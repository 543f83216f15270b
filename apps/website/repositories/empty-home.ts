/** The home of a repository whose default branch does not exist: what to type, ready to copy. */
import type { SiteAnswer } from '../layout/answer.ts';
import { buttonForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { repositoryAddress } from './addresses.ts';
import type { Asked } from './asked.ts';
import { cloneUrl, copyBox, refPicker, showRepositoryPage } from './frame.ts';
import { shownName } from './shown-text.ts';

export async function emptyHome(asked: Asked): Promise<SiteAnswer> {
  const { visit, repository } = asked;
  const { defaultBranch, owned } = repository;
  const url = cloneUrl(asked);
  // Without a chosen default branch, whatever is pushed first becomes it.
  const pushed = owned.initialDefaultBranch === null ? 'HEAD' : shellWord(defaultBranch);
  const hasRefs = repository.entity.state.refs.size > 0;
  const content = html`${
    hasRefs &&
    html`<p class="note">The default branch, ${shownName(defaultBranch)}, does not exist. Choose another in the settings, or look at what there is:</p>
<div class="row">${await refPicker(asked, 'tree', defaultBranch, [])}</div>`
  }<section class="box"><header><h2>${
    hasRefs ? 'Push the default branch' : 'Nothing here yet. Push what you have'
  }</h2></header><div class="stack part">${copyBox(`git remote add origin ${url}`, 'Name the repository')}${copyBox(
    `git push -u origin ${pushed}`,
    'Push to it',
  )}<p class="soft">Git asks for a user name (any) and a password: an access token.</p></div></section>
<section class="box"><header><h2>Or begin with nothing</h2></header><div class="stack part">${copyBox(
    `git clone ${url} && cd ${owned.name}`,
    'Clone it',
  )}${copyBox(
    `echo "# ${owned.name}" > README.md && git add . && git commit -m Begin && git push -u origin ${owned.initialDefaultBranch === null ? 'HEAD' : `HEAD:${shellWord(defaultBranch)}`}`,
    'Push a first commit',
  )}</div></section>${
    !hasRefs &&
    html`<section class="box"><header><h2>Or begin here</h2></header><div class="stack part"><p>A README with the repository’s name and description, as its first commit.</p>${buttonForm(
      { action: `${repositoryAddress(repository)}/readme`, csrf: visit.csrf() },
      html`<button class="button">Begin with a README</button>`,
    )}</div></section>`
  }`;
  return showRepositoryPage(asked, { title: null, tab: 'Code', isHome: true }, content);
}

/** A branch may be called `$(rm -rf .)`: what is copied into a shell must be that name and nothing else. */
export function shellWord(text: string): string {
  return /^[\w./@%+=:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
