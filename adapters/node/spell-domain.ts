/**
 * The spellings of international domain names, by node:url, whose functions map names as the hosts of URLs.
 *
 * Invariants: each spelling that is returned leads to the same two.
 */
import { domainToASCII, domainToUnicode } from 'node:url';
import type { SpellDomain } from '../../core/kernel/domain-spellings.ts';

/** What ends or changes the host of a URL: node:url cuts the name there, or takes `%61` for `a`. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the parser of URLs drops tabs and line feeds.
const URL_SYNTAX = /[\0- "#%/:<>?@[\\\]^`{|}\x7f]/;
/** Letters, digits, hyphens and underscores, at most 63 in a label (RFC 1035, 2.3.4); no address of IPv4. */
const DOMAIN_NAME = /^[\w-]{1,63}(\.[\w-]{1,63})*$/;
const ENDS_IN_NUMBER = /(^|\.)\d+$/;
const ASCII_SPELLING = /(^|\.)xn--/;

export const spellDomain: SpellDomain = (domain) => {
  if (URL_SYNTAX.test(domain)) return null;
  const ascii = domainToASCII(domain);
  if (!DOMAIN_NAME.test(ascii) || ENDS_IN_NUMBER.test(ascii)) return null;
  const unicode = domainToUnicode(ascii);
  // A label that stands for no letters is left as it is. That of `xn--example-.org` leads to another name.
  return !ASCII_SPELLING.test(unicode) && domainToASCII(unicode) === ascii ? { ascii, unicode } : null;
};
