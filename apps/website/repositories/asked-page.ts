/** Who asks for a page of a repository, and the repository as the page shows it. */
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import type { PersonVisit } from '../layout/visit.ts';

export interface AskedPage {
  readonly visit: PersonVisit;
  readonly repository: FoundRepository;
  /** Whether the page shows the repository as of the moment that its address names. */
  readonly takesMoment?: boolean;
}
