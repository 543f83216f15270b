/**
 * How a room of pages registers itself.
 *
 * Invariants: `page` and `form` reach their handlers only for somebody who is signed in; the others of this
 * interface say in their name that anybody may. Every form is checked for its token and its sender before its handler.
 */
import type { SiteContext } from '../context.ts';
import type { SiteAnswer } from './answer.ts';
import type { Fields } from './forms.ts';
import type { NavigationLink, PersonVisit, SignedIn, Visit } from './visit.ts';

export interface Room {
  /** Its link in the navigation; absent for a room that others lead to. Null: none for this person. */
  readonly navigation?: (person: SignedIn) => NavigationLink | null;
  readonly routes: (site: Site) => void;
  /** Answers an address of the room that no route takes; null for an address of another room. */
  readonly missing?: (context: SiteContext, visit: PersonVisit) => Promise<SiteAnswer | null>;
}

export interface FormOptions {
  /** `FORM_BYTES_MAX` by default. */
  readonly bytesMax?: number;
  /** Whether the form is sent in parts. */
  readonly parts?: boolean;
  /** The field whose text is shown once more where the form is out of date: a long text that a person wrote. */
  readonly keeps?: string;
}

/**
 * Where a room registers its routes. Paths are in the router's notation: `/webhooks/:id`, `/:username/:repository/*`.
 * A page answers GET and HEAD, a form answers POST.
 */
export interface Site {
  readonly context: SiteContext;
  /** Strangers are sent to the sign-in page, and from there to this page. */
  page(path: string, handler: (visit: PersonVisit) => Promise<SiteAnswer>): void;
  form(path: string, handler: (visit: PersonVisit, fields: Fields) => Promise<SiteAnswer>, options?: FormOptions): void;
  /**
   * Goes on when the account's changes of the month are used up: what deletes, revokes and purges, what keeps the
   * account its person's, and what appends nothing to the account's record.
   */
  formBeyondQuota: Site['form'];
  publicPage(path: string, handler: (visit: Visit) => Promise<SiteAnswer>): void;
  publicForm(path: string, handler: (visit: Visit, fields: Fields) => Promise<SiteAnswer>, options?: FormOptions): void;
}
