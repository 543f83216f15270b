/** The reference of the API: one page for each subject, from the OpenAPI document. */
import { type SiteAnswer } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { notFound } from '../layout/problems.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, showDocs, words } from './frame.ts';
import type { ApiAnswer, ApiOperation, ApiReference, FieldRow, FieldTable } from './open-api.ts';

const API = `${DOCS}/api`;

export function apiOverview(visit: Visit, { version, text, subjects }: ApiReference): SiteAnswer {
  const lists = subjects.map(
    ({ name, slug, operations }) =>
      html`<section class="box"><header><h2><a href="${API}/${slug}">${name}</a></h2></header><table class="operations"><tbody>${operations.map(
        ({ id, method, path, summary }) =>
          html`<tr><td><span class="mark">${method}</span></td><td><a href="${API}/${slug}#${id}">${summary}</a></td><td class="wide"><code>${path}</code></td></tr>`,
      )}</tbody></table></section>`,
  );
  const content = html`<p>${words(text)}</p>
<p>Requests carry an <a href="${DOCS}/tokens">access token</a>. The same as a document for programs: <a href="/v1/openapi.json">OpenAPI 3.1</a> or <a href="/v1/openapi-3.0.json">3.0</a>, of version ${version}.</p>
${commands('Ask the API', `curl -H "Authorization: Bearer $TOKEN" ${visit.baseUrl}/v1/repositories`)}
${lists}
<h2 id="errors">Errors</h2>
<p>An error is <code>{"detail": "<em>text</em>"}</code>. Where a field does not fit, <code>detail</code> lists one entry for each: <code>loc</code> names the field, <code>msg</code> says what is wrong. What a token may not see answers exactly as what does not exist.</p>`;
  return showDocs(visit, { title: 'API', path: API, head: 'The API' }, content);
}

export function apiSubject(visit: Visit, reference: ApiReference): SiteAnswer {
  const subject = reference.subjects.find(({ slug }) => slug === visit.params['subject']);
  if (subject === undefined) return notFound(visit);
  const { name, operations } = subject;
  const content = html`<p><a href="${API}">All subjects</a></p>${
    operations.length > 1 &&
    html`<ul>${operations.map(({ id, summary }) => html`<li><a href="#${id}">${summary}</a></li>`)}</ul>`
  }${operations.map((operation) => operationSection(visit, operation))}`;
  return showDocs(visit, { title: `${name} · API`, path: API, head: `API: ${name}` }, content);
}

function operationSection(visit: Visit, operation: ApiOperation): Html {
  const { id, method, path, summary, paragraphs, parameters, body, successes, problems } = operation;
  return html`<section class="stack operation" id="${id}"><h2>${summary}</h2>
<p class="route"><span class="mark">${method}</span> <code>${path}</code></p>
${paragraphs.map((text) => html`<p>${words(text)}</p>`)}
${commands(summary, exampleOf(visit, operation))}
${fieldsIn('Parameters', parameters)}${body.map(({ name, rows }) => fieldsIn(name === null ? 'Body' : `Body: ${name}`, rows))}
${successes.map(answerDetails)}
<details class="box"><summary><header>When it is refused: ${problems.map(({ status }) => status).join(', ')}</header></summary><div class="scroll"><table><tbody>${problems.map(
    ({ status, text }) => html`<tr><td>${status}</td><td>${words(text)}</td></tr>`,
  )}</tbody></table></div></details></section>`;
}

function exampleOf({ baseUrl }: Visit, { method, path, needsToken, exampleBody }: ApiOperation): string {
  const verb = method === 'GET' ? '' : `-X ${method} `;
  const token = needsToken ? '-H "Authorization: Bearer $TOKEN" ' : '';
  const body = exampleBody === null ? '' : ` -H 'Content-Type: application/json' -d '${exampleBody}'`;
  return `curl ${verb}${token}${baseUrl}${path.replaceAll(/\{(\w+)\}/g, '$$$1')}${body}`;
}

function answerDetails({ status, media, tables }: ApiAnswer): Content {
  const rows = tables.filter(({ rows: fields }) => fields.length > 0);
  const content = media === null ? 'without fields' : html`as <code>${media}</code>`;
  if (rows.length === 0) return html`<p><b>${status}</b> <span class="soft">${content}</span></p>`;
  return html`<details class="box"><summary><header>Answer ${status}</header></summary>${rows.map(answerTable)}</details>`;
}

function answerTable({ title, rows }: FieldTable): Html {
  return html`${title !== null && html`<p class="variant">Where <code>type</code> is <code>${title}</code></p>`}${table(rows)}`;
}

function fieldsIn(title: string, rows: readonly FieldRow[]): Content {
  return rows.length > 0 && html`<section class="box"><header><h3>${title}</h3></header>${table(rows)}</section>`;
}

function table(rows: readonly FieldRow[]): Html {
  const hasTexts = rows.some(({ text }) => text !== '');
  return html`<div class="scroll"><table class="cards"><thead><tr><th scope="col">Field</th><th scope="col">Holds</th>${hasTexts && html`<th scope="col">Meaning</th>`}</tr></thead><tbody>${rows.map(
    ({ name, type, required, text }) =>
      html`<tr><td><code>${name}</code>${!required && html` <small>optional</small>`}</td><td>${words(type)}</td>${hasTexts && html`<td>${words(text)}</td>`}</tr>`,
  )}</tbody></table></div>`;
}
