import { used } from '../../adapters/git/exports.ts';
import { parse } from 'undeclared';

parse(used);
