/** How to reach who runs the service, as the operator has set it. */
import { type Html, html } from '../layout/html.ts';

export function contactText(operatorContact: string | null): Html {
  if (operatorContact === null) return html`Ask the person or the team who gave you this address.`;
  return html`Write to ${contactLink(operatorContact)}.`;
}

/** An address becomes a link; any other text stays text. */
function contactLink(contact: string): Html {
  if (/^https?:\/\/[^\s]+$/.test(contact)) return html`<a href="${contact}">${contact}</a>`;
  if (/^[^\s@<>"]+@[^\s@<>"]+$/.test(contact)) return html`<a href="mailto:${contact}">${contact}</a>`;
  return html`${contact}`;
}
