// accepted
declare function html(literals: TemplateStringsArray, ...values: readonly string[]): string;

export const view = (value: string): string =>
  html`<script type="module" src="${value}"></script><a href="${value}" title="on = off">${value}</a>${`a=${value}`}`;
