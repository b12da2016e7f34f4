import { TuttiError, pathProblem } from '@tutti/core'

/** @throws TuttiError `invalid_argument` with the path. */
export function checkPath(path: Uint8Array): void {
  const why = pathProblem(path)
  if (why === undefined) return
  const shown = Buffer.from(path.subarray(0, 200)).toString('utf8')
  throw new TuttiError('invalid_argument', `The path ${JSON.stringify(shown)} is refused: ${why}.`, {
    field: 'changes.path',
    path: shown,
  })
}

/** The path in git's quoted form; works for any byte. */
export function quotePath(path: Uint8Array): Buffer {
  const out: number[] = [0x22]
  for (const byte of path) {
    if (byte === 0x22 || byte === 0x5c) out.push(0x5c, byte)
    else if (byte < 0x20 || byte === 0x7f) out.push(0x5c, ...Buffer.from(byte.toString(8).padStart(3, '0')))
    else out.push(byte)
  }
  out.push(0x22)
  return Buffer.from(out)
}
