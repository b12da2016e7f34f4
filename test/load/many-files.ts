/** So many files of some 2 KB, a hundred in a folder. */
export const manyFiles = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [pathOf(at), contentOf(at, 0)]))

export const pathOf = (at: number): string => `folder-${Math.floor(at / 100)}/file-${at % 100}.txt`

const contentOf = (at: number, round: number): string => `file ${at}, round ${round}\n`.repeat(100)

/** A program for `node -e` that rewrites files `from` to `to`; those that are not there yet are made. */
export const rewriteFiles = (from: number, to: number, round: number): string =>
  [
    'const fs = require("fs");',
    `for (let at = ${from}; at < ${to}; at++) {`,
    'const folder = "folder-" + Math.floor(at / 100);',
    'fs.mkdirSync(folder, { recursive: true });',
    `fs.writeFileSync(folder + "/file-" + (at % 100) + ".txt", ("file " + at + ", round ${round}\\n").repeat(100))`,
    '}',
  ].join(' ')
