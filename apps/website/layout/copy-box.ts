/** A text to copy: a command, an address or a secret. Scripts add the button; without them it can be selected. */
import { type Html, html } from './html.ts';

/** `what` completes the button's name for screen readers: `the clone address`. */
export function copyBox(text: string, what: string): Html {
  return html`<div class="copy"><code tabindex="0">${text}</code><button type="button" aria-label="Copy ${what}" hidden>Copy</button></div>`;
}
