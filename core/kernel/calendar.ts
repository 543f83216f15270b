/**
 * The calendar of RFC 3339 (proleptic Gregorian, UTC) as arithmetic, because core does not use `Date`.
 *
 * Invariants: `daysFromCivil` and `civilFromDays` are inverse to each other for every day of the years 1 to 9999.
 */

/** A calendar day: months and days count from 1. */
export interface CivilDay {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

const DAYS_PER_ERA = 146_097;
const DAYS_FROM_0000_03_01_TO_1970 = 719_468;
const MONTH_LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Returns 28 to 31, or 0 for a number that is no month. */
export function daysInMonth(year: number, month: number): number {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return month === 2 && leap ? 29 : (MONTH_LENGTHS[month - 1] ?? 0);
}

/**
 * Returns the days since 1970-01-01. The algorithm starts years in March, so that a leap day is a year's last day:
 * H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
 */
export function daysFromCivil({ year, month, day }: CivilDay): number {
  const shifted = month > 2 ? year : year - 1;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * DAYS_PER_ERA + dayOfEra - DAYS_FROM_0000_03_01_TO_1970;
}

/** Returns the day that is `days` days after 1970-01-01. */
export function civilFromDays(days: number): CivilDay {
  const sinceOrigin = days + DAYS_FROM_0000_03_01_TO_1970;
  const era = Math.floor(sinceOrigin / DAYS_PER_ERA);
  const dayOfEra = sinceOrigin - era * DAYS_PER_ERA;
  const leapDays = Math.floor(dayOfEra / 1_460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leapDays) / 365);
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  const day = dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1;
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day };
}
