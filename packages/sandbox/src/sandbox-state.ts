import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { bootId, isSameProcess, passingName } from '@tutti/processes'

export interface ProcessName {
  readonly pid: number
  readonly start: string
}

/** What another process must know to end a sandbox whose maker is dead. */
export interface SandboxState {
  readonly version: 1
  readonly id: string
  readonly key: string
  readonly owner: string
  readonly isolation: 'bubblewrap' | 'none'
  readonly bootId: string
  readonly maker: ProcessName
  readonly groups: readonly string[]
  readonly mounted: boolean
  /** The outermost process, once there is one. */
  readonly main?: ProcessName
  /** Process 1 of the pid namespace, as the host sees it. */
  readonly init?: ProcessName
}

/**
 * A name for any key: the same in every process, which makes `create` idempotent across restarts, and another one for another root, as
 * kernel groups and markers are the whole host's.
 */
export const sandboxId = (root: string, key: string): string =>
  createHash('sha256')
    .update(`${resolve(root)}\0${key}`)
    .digest('hex')
    .slice(0, 24)

export const isSandboxId = (text: string): boolean => /^[0-9a-f]{24}$/.test(text)

export const stateFile = (root: string, id: string): string => join(root, `${id}.json`)
export const sandboxFolder = (root: string, id: string): string => join(root, id)

export async function writeState(root: string, state: SandboxState): Promise<void> {
  const temporary = join(root, `${passingName('state')}-${state.id}`)
  await writeFile(temporary, JSON.stringify(state), { mode: 0o600 })
  await rename(temporary, stateFile(root, state.id))
}

export async function readState(root: string, id: string): Promise<SandboxState | undefined> {
  if (!isSandboxId(id)) return undefined
  try {
    const state = JSON.parse(await readFile(stateFile(root, id), 'utf8')) as SandboxState
    return state.version === 1 ? state : undefined
  } catch {
    return undefined
  }
}

export async function listStates(root: string): Promise<SandboxState[]> {
  const names = await readdir(root).catch(() => [])
  const ids = names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -5))
  const states = await Promise.all(ids.map((id) => readState(root, id)))
  return states.filter((state) => state !== undefined)
}

/** As {@link listStates}, for a process that has no time to wait. */
export function listStatesSync(root: string): SandboxState[] {
  if (!existsSync(root)) return []
  return readdirSync(root).flatMap((name) => {
    if (!name.endsWith('.json')) return []
    try {
      const state = JSON.parse(readFileSync(join(root, name), 'utf8')) as SandboxState
      return state.version === 1 ? [state] : []
    } catch {
      return []
    }
  })
}

export const removeState = (root: string, id: string): Promise<void> =>
  rm(stateFile(root, id), { force: true })

/** A process of another boot is dead, whatever has its pid now. */
export const isMakerAlive = (state: SandboxState): boolean =>
  state.bootId === bootId() && isSameProcess(state.maker.pid, state.maker.start)
