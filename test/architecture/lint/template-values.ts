/**
 * The lint rule about values in templates of pages: `html` of apps/website/layout/html.ts escapes every value, which is
 * enough only in text and between the quotes of an attribute.
 */

interface Template {
  readonly quasi: { readonly quasis: readonly { readonly value: { readonly raw: string } }[] };
  readonly tag: { readonly type: string; readonly name?: string };
}

interface RuleContext {
  report(problem: { readonly node: Template; readonly message: string }): void;
}

/** Returns why a value may not follow this part of a template; null if it may. */
function faultBeforeValue(part: string): string | null {
  if (/=\s*$/.test(part)) return 'Quote the attribute: a value without quotes may end it and begin another';
  if (/<\/?$/.test(part)) return 'A value may not name an element';
  return null;
}

/** Returns why a part of a template is refused wherever it stands; null if it is not. */
function faultOf(part: string): string | null {
  if (/<style\b/i.test(part) || /\sstyle\s*=/i.test(part))
    return 'Styles belong into assets/site.css: the policy refuses inline ones';
  if (/<script\b(?![^>]*\ssrc=")/i.test(part))
    return 'Scripts belong into assets/scripts: the policy refuses inline ones';
  if (/<[^>]*\son[a-z]+\s*=/i.test(part)) return 'Handlers belong into assets/scripts: the policy refuses inline ones';
  return null;
}

export const placeValuesSafely = {
  create(context: RuleContext) {
    return {
      TaggedTemplateExpression(node: Template) {
        if (node.tag.type !== 'Identifier' || node.tag.name !== 'html') return;
        const parts = node.quasi.quasis.map(({ value }) => value.raw);
        const faults = parts.flatMap((part, index) => {
          const isBeforeValue = index < parts.length - 1;
          return [faultOf(part) ?? [], (isBeforeValue ? faultBeforeValue(part) : null) ?? []].flat();
        });
        for (const message of faults) context.report({ node, message });
      },
    };
  },
};
