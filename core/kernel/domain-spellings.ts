/** International domain names have two spellings, which the platform maps (UTS 46): core has no tables of Unicode. */

export interface DomainSpellings {
  /** In ASCII, as the domain name system has it: `xn--mnchen-3ya.example`. */
  readonly ascii: string;
  /** With the letters of its language, lower case: `münchen.example`. */
  readonly unicode: string;
}

/** Returns both spellings of a domain name that is given in one of them; null if no domain can have this name. */
export type SpellDomain = (domain: string) => DomainSpellings | null;
