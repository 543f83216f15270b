// refused: strata(templates-place-values-safely)
declare function html(literals: TemplateStringsArray, ...values: readonly string[]): string;

export const view = (value: string): string => html`<a href=${value}>x</a>`;
