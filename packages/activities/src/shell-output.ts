import { open, rm, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import type { BlobStore } from '@tutti/blob-store'
import { limits } from '@tutti/core'
import type { RunEvent, ShellOutput } from '@tutti/protocol'

type ShellEvent = Extract<RunEvent, { type: 'shell_output_delta' }>

/** Keeps the head and the tail of each call's output inline, and all of it as a blob (design §7), up to the limit. */
export interface ShellOutputCap {
  /** The events to log in place of this one. */
  pass(event: ShellEvent, signal: AbortSignal): Promise<RunEvent[]>
  /** Ends a call that never said how it ended. */
  end(callId: string, signal: AbortSignal): Promise<RunEvent[]>
  /** Drops what is left on disk. */
  close(): Promise<void>
}

interface Call {
  /** Bytes of the head. */
  inline: number
  /** Held back output: what may still become the tail. */
  tail: { case: 'stdout' | 'stderr'; data: string }[]
  tailBytes: number
  leftOut: number
  /** Everything that did not stay inline at the head is written here, after a copy of the head. */
  spool?: FileHandle
  /** Bytes that are in it. */
  spooled: number
  head: string[]
}

export function createShellOutputCap(blobs: BlobStore): ShellOutputCap {
  const calls = new Map<string, Call>()

  const spool = async (call: Call, data: string) => {
    if (!call.spool) {
      const path = join(tmpdir(), `tutti-shell-${randomUUID()}`)
      call.spool = await open(path, 'wx+', 0o600)
      // Without a name it is gone with the process, however that ends.
      await rm(path)
      call.spooled += (await call.spool.write(call.head.join(''))).bytesWritten
      call.head = []
    }
    // Endless output must not fill the disk of the host; a character that is cut in two is the last one.
    const bytes = Buffer.from(data).subarray(0, limits.maxShellOutputBytes - call.spooled)
    if (bytes.length > 0) call.spooled += (await call.spool.write(bytes)).bytesWritten
  }

  const keepTail = (call: Call, part: { case: 'stdout' | 'stderr'; data: string }) => {
    call.tail.push(part)
    call.tailBytes += Buffer.byteLength(part.data)
    for (;;) {
      const oldest = Buffer.byteLength(call.tail[0]!.data)
      if (call.tailBytes - oldest < limits.shellTailBytes) return
      call.tail.shift()
      call.tailBytes -= oldest
      call.leftOut += oldest
    }
  }

  const finish = async (callId: string, signal: AbortSignal): Promise<RunEvent[]> => {
    const call = calls.get(callId)
    calls.delete(callId)
    if (!call?.spool) return []
    const file = call.spool
    const blobId = await blobs
      .put(file.createReadStream({ start: 0, autoClose: false }), signal)
      .finally(() => file.close())
    const event = (shell: ShellOutput): ShellEvent => ({ type: 'shell_output_delta', callId, event: shell })
    return [
      ...(call.leftOut > 0 ? [event({ case: 'truncated', bytes: call.leftOut, blobId })] : []),
      ...call.tail.map(event),
    ]
  }

  return {
    async pass(event, signal) {
      const { callId, event: shell } = event
      if (shell.case === 'exit') return [...(await finish(callId, signal)), event]
      if (!('data' in shell)) return [event]
      let call = calls.get(callId)
      if (!call)
        calls.set(callId, (call = { inline: 0, tail: [], tailBytes: 0, leftOut: 0, spooled: 0, head: [] }))
      const bytes = Buffer.byteLength(shell.data)
      if (!call.spool && call.inline + bytes <= limits.shellHeadBytes) {
        call.inline += bytes
        call.head.push(shell.data)
        return [event]
      }
      await spool(call, shell.data)
      keepTail(call, shell)
      return []
    },
    end: finish,
    async close() {
      for (const call of calls.values()) await call.spool?.close()
      calls.clear()
    },
  }
}
