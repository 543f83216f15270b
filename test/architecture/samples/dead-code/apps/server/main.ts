import { used } from '../../core/git/exports.ts';
import { parse } from 'undeclared';

parse(used);
