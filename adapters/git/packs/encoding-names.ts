/**
 * The names of encodings that glibc's iconv knows and that are decoded here, and which codec reads each. git asks
 * iconv, so a name that only the library knows (`base64`, `latin-2`, `win1251`) does not stand here.
 *
 * Invariants: a name stands here in capitals, as `iconv -l` prints it. Each encoding holds ASCII as it is: in others
 * (UTF-16, EBCDIC) git finds no headers in a commit, and shows what lies behind its buffer. ASCII and UTF-8 are left
 * out, since git shows their bytes unchanged.
 */

/** A span of byte values, both ends included. */
type Span = readonly [first: number, last: number];

/** The sequences of bytes that glibc takes for a character, where the codec takes more of them. */
export interface ByteForm {
  /** Bytes that are a character by themselves. */
  readonly single: readonly Span[];
  /** First bytes of a character of two bytes, and what may come second. */
  readonly first: readonly Span[];
  readonly second: readonly Span[];
  /** A byte that two of `second` follow. */
  readonly before2?: number;
}

export interface NamedEncoding {
  readonly codec: string;
  /** Separated by spaces. */
  readonly names: string;
  readonly form?: ByteForm;
  /** Whether glibc makes one character of a letter and the mark behind it. */
  readonly composes?: true;
}

const ASCII: Span = [0x00, 0x7f];
const KANA: Span = [0xa1, 0xdf];
const UPPER: Span = [0xa1, 0xfe];
const EUC_CN: ByteForm = {
  single: [ASCII],
  first: [
    [0xa1, 0xa9],
    [0xb0, 0xf7],
  ],
  second: [UPPER],
};
const EUC_KR: ByteForm = {
  single: [[0x00, 0x9f]],
  first: [
    [0xa1, 0xac],
    [0xb0, 0xc8],
    [0xca, 0xfd],
  ],
  second: [UPPER],
};
const EUC_JP: ByteForm = {
  single: [ASCII],
  first: [
    [0x8e, 0x8e],
    [0xa1, 0xa8],
    [0xb0, 0xf4],
  ],
  second: [UPPER],
  before2: 0x8f,
};
const SHIFT_JIS: ByteForm = {
  single: [ASCII, KANA],
  first: [
    [0x81, 0x84],
    [0x88, 0x9f],
    [0xe0, 0xea],
  ],
  second: [[0x40, 0xfc]],
};
const CP932: ByteForm = {
  single: [ASCII, KANA],
  first: [
    [0x81, 0x9f],
    [0xe0, 0xfc],
  ],
  second: [[0x40, 0xfc]],
};
const BIG5: ByteForm = {
  single: [ASCII],
  first: [[0xa1, 0xf9]],
  second: [[0x40, 0x7e], UPPER],
};
/** A character of four bytes has the form of two of two. */
const GB18030: ByteForm = { single: [ASCII], first: [[0x81, 0xfe]], second: [[0x30, 0xfe]] };

export const NAMED_ENCODINGS: readonly NamedEncoding[] = [
  { codec: 'armscii8', names: 'ARMSCII-8 ARMSCII8' },
  { codec: 'cp1046', names: '1046 CP1046 IBM-1046 IBM1046' },
  { codec: 'cp1124', names: 'CP1124 CSIBM1124 IBM-1124 IBM1124' },
  { codec: 'cp1125', names: 'CP1125 IBM848 RUSCII' },
  { codec: 'cp1129', names: 'CP1129 CSIBM1129 IBM-1129 IBM1129' },
  { codec: 'cp1133', names: 'CP1133 CSIBM1133 IBM-1133 IBM1133' },
  { codec: 'cp1161', names: 'CP1161 CSIBM1161 IBM-1161 IBM1161' },
  { codec: 'cp1162', names: 'CP1162 CSIBM11621162 IBM-1162 IBM1162' },
  { codec: 'cp1163', names: 'CP1163 CSIBM1163 IBM-1163 IBM1163' },
  { codec: 'cp437', names: '437 CP437 CSPC8CODEPAGE437 IBM437 OSF100201B5' },
  { codec: 'cp737', names: 'CP737' },
  { codec: 'cp775', names: 'CP775 CSPC775BALTIC IBM775' },
  { codec: 'cp850', names: '850 CP850 CSPC850MULTILINGUAL IBM850 OSF10020352' },
  { codec: 'cp852', names: '852 CP852 CSPCP852 IBM852 OSF10020354' },
  { codec: 'cp855', names: '855 CP855 CSIBM855 IBM855 OSF10020357' },
  { codec: 'cp856', names: '856 CP856 CSIBM856 IBM-856 IBM856' },
  { codec: 'cp857', names: '857 CP857 CSIBM857 IBM857 OSF10020359' },
  { codec: 'cp858', names: '858 CP858 CSPC858MULTILINGUAL IBM858' },
  { codec: 'cp860', names: '860 CP860 CSIBM860 IBM860' },
  { codec: 'cp861', names: '861 CP861 CPIBM861 IBM861 OSF1002035D' },
  { codec: 'cp862', names: '862 CP862 CSPC862LATINHEBREW IBM862 OSF1002035E' },
  { codec: 'cp863', names: '863 CP863 CSIBM863 IBM863 OSF1002035F' },
  { codec: 'cp864', names: '864 CP864 CSIBM864 IBM864 OSF10020360' },
  { codec: 'cp865', names: '865 CP865 CSIBM865 IBM865' },
  { codec: 'cp866', names: '866 CP866 CSIBM866 IBM866' },
  { codec: 'cp869', names: '869 CP-GR CP869 CSIBM869 IBM869 OSF10020365' },
  { codec: 'cp922', names: 'CP922 CSIBM922 IBM-922 IBM922' },
  { codec: 'cp936', names: 'CP936 GB13000 GBK MS936 WINDOWS-936' },
  { codec: 'cp949', names: 'CP949 MSCP949 OSF100203B5 UHC' },
  { codec: 'georgianacademy', names: 'GEORGIAN-ACADEMY' },
  { codec: 'georgianps', names: 'GEORGIAN-PS' },
  { codec: 'hproman8', names: 'CSHPROMAN8 HP-ROMAN8 HPROMAN8 OSF10010001 R8 ROMAN8' },
  { codec: 'iso646cn', names: 'CN CSISO58GB1988 GB_1988-80 GB_198880 ISO-IR-57 ISO646-CN' },
  { codec: 'iso646jp', names: 'CSISO14JISC6220RO ISO-IR-14 ISO646-JP JIS_C6220-1969-RO JIS_C62201969RO JP' },
  {
    codec: 'iso88591',
    names:
      '8859_1 CP819 CSISOLATIN1 IBM819 ISO-8859-1 ISO-IR-100 ISO8859-1 ISO88591 ISO_8859-1 ISO_8859-1:1987 ' +
      'L1 LATIN1 OSF00010001',
  },
  {
    codec: 'iso885910',
    names:
      'CSISOLATIN6 ISO-8859-10 ISO-IR-157 ISO8859-10 ISO885910 ISO_8859-10 ISO_8859-10:1992 L6 LATIN6 ' + 'OSF0001000A',
  },
  { codec: 'iso885911', names: 'HP-THAI8 HPTHAI8 THAI8 ISO-8859-11 ISO8859-11 ISO885911' },
  {
    codec: 'iso885913',
    names: 'BALTIC ISO-8859-13 ISO-IR-179 ISO8859-13 ISO885913 L7 LATIN7 CP921 CSIBM921 IBM-921 IBM921',
  },
  {
    codec: 'iso885914',
    names: 'ISO-8859-14 ISO-CELTIC ISO-IR-199 ISO8859-14 ISO885914 ISO_8859-14 ISO_8859-14:1998 L8 LATIN8',
  },
  {
    codec: 'iso885915',
    names: 'ISO-8859-15 ISO-IR-203 ISO8859-15 ISO885915 ISO_8859-15 ISO_8859-15:1998 LATIN-9 LATIN9',
  },
  { codec: 'iso885916', names: 'ISO-8859-16 ISO-IR-226 ISO8859-16 ISO885916 ISO_8859-16 ISO_8859-16:2001 L10 LATIN10' },
  {
    codec: 'iso88592',
    names:
      '8859_2 CP912 CSISOLATIN2 IBM912 ISO-8859-2 ISO-IR-101 ISO8859-2 ISO88592 ISO_8859-2 ISO_8859-2:1987 ' +
      'L2 LATIN2 OSF00010002',
  },
  {
    codec: 'iso88593',
    names:
      '8859_3 CSISOLATIN3 ISO-8859-3 ISO-IR-109 ISO8859-3 ISO88593 ISO_8859-3 ISO_8859-3:1988 L3 LATIN3 ' +
      'OSF00010003',
  },
  {
    codec: 'iso88594',
    names:
      '8859_4 CSISOLATIN4 ISO-8859-4 ISO-IR-110 ISO8859-4 ISO88594 ISO_8859-4 ISO_8859-4:1988 L4 LATIN4 ' +
      'OSF00010004',
  },
  {
    codec: 'iso88595',
    names:
      '8859_5 CP915 CSISOLATINCYRILLIC CYRILLIC IBM915 ISO-8859-5 ISO-IR-144 ISO8859-5 ISO88595 ISO_8859-5 ' +
      'ISO_8859-5:1988 OSF00010005',
  },
  {
    codec: 'iso88596',
    names:
      '8859_6 ARABIC ASMO-708 CP1089 CSISOLATINARABIC ECMA-114 IBM1089 ISO-8859-6 ISO-IR-127 ISO8859-6 ' +
      'ISO88596 ISO_8859-6 ISO_8859-6:1987 OSF00010006',
  },
  {
    codec: 'iso88597',
    names:
      '8859_7 CP813 CSISOLATINGREEK ECMA-118 ELOT_928 GREEK GREEK8 IBM813 ISO-8859-7 ISO-IR-126 ISO8859-7 ' +
      'ISO88597 ISO_8859-7 ISO_8859-7:1987 ISO_8859-7:2003 OSF00010007',
  },
  {
    codec: 'iso88598',
    names:
      '8859_8 CP916 CSISOLATINHEBREW HEBREW IBM916 ISO-8859-8 ISO-IR-138 ISO8859-8 ISO88598 ISO_8859-8 ' +
      'ISO_8859-8:1988 OSF00010008',
  },
  {
    codec: 'iso88599',
    names:
      '8859_9 CP920 CSISOLATIN5 ECMA-128 IBM920 ISO-8859-9 ISO-IR-148 ISO8859-9 ISO88599 ISO_8859-9 ' +
      'ISO_8859-9:1989 L5 LATIN5 OSF00010009 TS-5881',
  },
  { codec: 'koi8r', names: 'CSKOI8R KOI8-R KOI8R' },
  { codec: 'koi8ru', names: 'KOI8-RU' },
  { codec: 'koi8t', names: 'KOI8-T' },
  { codec: 'koi8u', names: 'KOI8-U KOI8U' },
  { codec: 'maccenteuro', names: 'CP1282 MAC-CENTRALEUROPE' },
  { codec: 'macintosh', names: 'CSMACINTOSH MAC MACINTOSH' },
  { codec: 'macukraine', names: 'MAC-CYRILLIC MAC-UK MACCYRILLIC MACUK MACUKRAINIAN' },
  { codec: 'iso-2022-jp', names: 'CSISO2022JP ISO-2022-JP ISO2022JP' },
  { codec: 'mik', names: 'MIK' },
  { codec: 'pt154', names: 'PT154' },
  { codec: 'rk1048', names: 'RK1048 STRK1048-2002' },
  { codec: 'tcvn', names: 'TCVN-5712 TCVN TCVN5712-1 TCVN5712-1:1993', composes: true },
  { codec: 'tis620', names: 'ISO-IR-166 TIS-620 TIS620-0 TIS620.2529-1 TIS620.2533-0 TIS620' },
  { codec: 'viscii', names: 'VISCII' },
  { codec: 'windows1250', names: 'CP1250 MS-EE WINDOWS-1250' },
  { codec: 'windows1251', names: 'CP1251 MS-CYRL WINDOWS-1251' },
  { codec: 'windows1252', names: 'CP1252 MS-ANSI WINDOWS-1252' },
  { codec: 'windows1253', names: 'CP1253 MS-GREEK WINDOWS-1253' },
  { codec: 'windows1254', names: 'CP1254 MS-TURK WINDOWS-1254' },
  { codec: 'windows1255', names: 'CP1255 MS-HEBR WINDOWS-1255', composes: true },
  { codec: 'windows1256', names: 'CP1256 MS-ARAB WINDOWS-1256 CP9448 CSIBM9448 IBM-9448 IBM9448' },
  { codec: 'windows1257', names: 'CP1257 WINBALTRIM WINDOWS-1257' },
  { codec: 'windows1258', names: 'CP1258 WINDOWS-1258', composes: true },
  { codec: 'windows874', names: '874 CP874 IBM874 WINDOWS-874' },
  { codec: 'big5', names: 'BIG-5 BIG-FIVE BIG5 BIGFIVE CN-BIG5 CP950', form: BIG5 },
  { codec: 'big5hkscs', names: 'BIG5-HKSCS BIG5HKSCS' },
  { codec: 'cp936', names: 'CN-GB EUC-CN EUCCN GB2312 CSGB2312', form: EUC_CN },
  { codec: 'cp949', names: 'CSEUCKR EUC-KR EUCKR OSF0004000A', form: EUC_KR },
  { codec: 'eucjp', names: 'CSEUCPKDFMTJAPANESE EUC-JP EUCJP OSF00030010 UJIS', form: EUC_JP },
  { codec: 'shiftjis', names: 'CSSHIFTJIS MS_KANJI SHIFT-JIS SHIFT_JIS SJIS', form: SHIFT_JIS },
  { codec: 'shiftjis', names: 'CP932 CSWINDOWS31J MS932 SJIS-OPEN SJIS-WIN WINDOWS-31J', form: CP932 },
  { codec: 'gb18030', names: 'GB18030', form: GB18030 },
];
