import type { PatchFile } from './split-patch.ts'

/** What a file is called in a patch, before and after it: the bytes that git has. */
export interface PatchPaths {
  readonly before: Buffer
  readonly after: Buffer
}

/** Reads the names of a file from its head: the first line alone cannot be read where two names without quotes differ. */
export function patchPaths({ head }: PatchFile): PatchPaths {
  const named = (...starts: readonly string[]) => {
    const [text] = starts.flatMap((start) =>
      head.flatMap((line) => (line.startsWith(start) ? [line.slice(start.length)] : [])),
    )
    // git ends a name that has a space with a tab.
    return text === undefined || text === '/dev/null' ? undefined : unquoted(text.replace(/\t$/, ''))
  }
  const from = named('rename from ', 'copy from ')
  const to = named('rename to ', 'copy to ')
  if (from && to) return { before: from, after: to }
  const before = withoutPrefix(named('--- '))
  const after = withoutPrefix(named('+++ '))
  const both = before ?? after ?? sameName(head[0]!)
  return { before: before ?? both, after: after ?? both }
}

const withoutPrefix = (name: Buffer | undefined): Buffer | undefined => name?.subarray('a/'.length)

/** Without a change of text or name both names of the first line are the same. */
function sameName(line: string): Buffer {
  const names = line.slice('diff --git '.length)
  return unquoted(names.slice((names.length + 1) / 2)).subarray('b/'.length)
}

const letters: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  t: '\t',
  n: '\n',
  v: '\v',
  f: '\f',
  r: '\r',
}

/** Undoes git's quotes; the name is bytes as latin1. */
function unquoted(name: string): Buffer {
  if (!name.startsWith('"')) return Buffer.from(name, 'latin1')
  const text = name
    .slice(1, -1)
    .replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) =>
      code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (letters[code] ?? code),
    )
  return Buffer.from(text, 'latin1')
}
