import type { AgentHost } from '@tutti/agent'
import { TuttiError } from '@tutti/core'
import { z } from 'zod'
import { defineTool } from './tool.ts'

/** What the model may read at once, and what an edit may rewrite, in bytes. */
const maxReadBytes = 256 << 10
const maxEditBytes = 4 << 20

const path = z.string().min(1).describe('Relative to the root of the workspace')

export const readFileTool = defineTool({
  name: 'read_file',
  description: 'Reads a text file of the workspace, at most 256 KiB of it.',
  input: z.object({ path }),
  // oxlint-disable-next-line require-yield -- has no events of its own
  async *run({ path: name }, { host, signal }) {
    const bytes = await host.readFile(name, maxReadBytes, signal)
    return {
      ok: true,
      value: { content: new TextDecoder().decode(bytes), truncated: bytes.length >= maxReadBytes },
    }
  },
})

export const writeFileTool = defineTool({
  name: 'write_file',
  description: 'Creates a file or replaces all of it; missing folders are made.',
  input: z.object({ path, content: z.string() }),
  // oxlint-disable-next-line require-yield -- has no events of its own
  async *run({ path: name, content }, { host, signal }) {
    const bytes = new TextEncoder().encode(content)
    await host.writeFile(name, bytes, signal)
    return { ok: true, value: { bytes: bytes.length } }
  },
})

export const editFileTool = defineTool({
  name: 'edit_file',
  description:
    'Replaces one exact piece of a text file. `old` must occur exactly once, unless `all` is true.',
  input: z.object({ path, old: z.string().min(1), new: z.string(), all: z.boolean().optional() }),
  // oxlint-disable-next-line require-yield -- has no events of its own
  async *run({ path: name, old, new: replacement, all }, { host, signal }) {
    const content = await readWhole(host, name, signal)
    const pieces = content.split(old)
    const count = pieces.length - 1
    if (count === 0)
      throw new TuttiError('invalid_argument', `${name} does not contain that text; read it first.`)
    if (count > 1 && all !== true) {
      throw new TuttiError(
        'invalid_argument',
        `${name} contains that text ${count} times; give more of what stands around it, or all: true.`,
      )
    }
    await host.writeFile(name, new TextEncoder().encode(pieces.join(replacement)), signal)
    return { ok: true, value: { replaced: count } }
  },
})

/** A file that was cut or decoded with losses must never be written back. */
async function readWhole(host: AgentHost, name: string, signal: AbortSignal): Promise<string> {
  const bytes = await host.readFile(name, maxEditBytes, signal)
  if (bytes.length >= maxEditBytes) {
    throw new TuttiError('invalid_argument', `${name} is larger than 4 MiB; edit it with a shell command.`)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    throw new TuttiError(
      'invalid_argument',
      `${name} is not UTF-8 text; edit it with a shell command.`,
      {},
      error,
    )
  }
}
