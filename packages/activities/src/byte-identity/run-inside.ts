import { readFileSync } from 'node:fs'
import { transformSync } from 'esbuild'
import type { HostSession } from '../sessions.ts'
import type { InsideEdit, InsideReport } from './inside-program.ts'
import type { NamedEdit } from './random-edits.ts'

/** Without types: to read them takes the node inside longer than all else. */
const program = transformSync(readFileSync(new URL('inside-program.ts', import.meta.url), 'utf8'), {
  loader: 'ts',
}).code

export interface RunInsideOptions {
  /** Of the first edit, since the epoch: what git takes for the time. */
  readonly seconds?: number
  /** Without it the report is empty. */
  readonly inspect?: boolean
}

const nothing: InsideReport = {
  tree: {},
  shut: [],
  git: { index: '', status: '', head: '', refs: '', stash: '', progress: '' },
  effective: [],
}

/**
 * Edits the workspace of a session, in one process inside, and says what it is then.
 *
 * @throws Error when the program fails; an edit that the tree does not allow is left out.
 */
export async function runInside(
  { server }: Pick<HostSession, 'server'>,
  edits: readonly NamedEdit[],
  { seconds = 1e9, inspect = true }: RunInsideOptions = {},
): Promise<InsideReport> {
  const work: readonly InsideEdit[] = edits.map(({ edit }) => edit)
  const argument = JSON.stringify({ edits: work, inspect, seconds })
  const argv = ['/opt/node/bin/node', '--input-type=module', '-e', program, argument]
  const run = server.exec({ argv }, new AbortController().signal)
  const output = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  let next = await run.next()
  for (; !next.done; next = await run.next()) output[next.value.stream].push(next.value.bytes)
  const { code } = next.value
  const text = (stream: keyof typeof output) => Buffer.concat(output[stream]).toString()
  if (code !== 0) throw new Error(`The program inside ended with ${code}: ${text('stderr')}`)
  return inspect ? (JSON.parse(text('stdout')) as InsideReport) : nothing
}
