import { TuttiError } from '@tutti/core'
import type { Sandbox } from './port.ts'

const pathOf = ({ home }: Pick<Sandbox, 'home'>): string => `${home}/.tutti-sandbox`

/** Writes into a new sandbox, before its first program, which one it is: on its own disk, where no other one has it. */
export async function markSandbox(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const bytes = Buffer.from(sandbox.ref.key)
  await sandbox.put([{ path: pathOf(sandbox), bytes, mode: 0o444 }], signal)
}

/**
 * Whether the disk of a sandbox is the one that was marked under its key: a provider may give back another one, or an empty one. Read by
 * the provider, so that no program inside can answer for it.
 */
export async function isMarked(sandbox: Sandbox, signal: AbortSignal): Promise<boolean> {
  try {
    const bytes = await sandbox.get(pathOf(sandbox), 1024, signal)
    return Buffer.from(bytes).toString() === sandbox.ref.key
  } catch (error) {
    if (error instanceof TuttiError && error.code === 'not_found') return false
    throw error
  }
}
