/**
 * The button that asks the browser for a passkey, for a form that sends the answer.
 *
 * Invariants: the button appears by the script passkeys.js. Without scripts the page says that it needs them.
 */
import type { JsonObject } from '../../../core/kernel/json.ts';
import type { ScriptName } from '../assets/files.ts';
import { type Html, html } from '../layout/html.ts';

/** The scripts of a page with the button, in the order in which they need each other. */
export const PASSKEY_SCRIPTS: readonly ScriptName[] = ['webauthn.js', 'passkeys.js'];

/** The field in which a browser's answer is sent. */
export const ANSWER = 'answer';

/** `create` makes a passkey, `get` uses one. */
export function passkeyButton(kind: 'create' | 'get', options: JsonObject, label: string): Html {
  return html`<div class="stack" data-passkey="${kind}" data-options="${JSON.stringify(options)}"><input type="hidden" name="${ANSWER}" value=""><p class="note bad" role="alert" hidden></p><noscript><p class="note">A browser gives passkeys to scripts only, and yours has them switched off.</p></noscript><div class="row"><button class="button main" hidden>${label}</button></div></div>`;
}
