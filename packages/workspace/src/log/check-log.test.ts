import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { agentId } from '@tutti/core'
import { createSqliteStore } from '@tutti/store'
import { expect, test } from 'vitest'
import { checkLog } from './check-log.ts'

const never = new AbortController().signal

test('looks at each record that was not archived, where it was looked at', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-check-'))
  const store = await createSqliteStore({ path: join(folder, 'tutti.db') })
  const database = new DatabaseSync(join(folder, 'tutti.db'))
  try {
    const { eventLog } = store
    const log = agentId(Date.now(), randomBytes(10))
    await eventLog.create(log, 'owner', never)
    const append = (sequence: number, body: string) =>
      eventLog.append(log, { id: 'sandbox', epoch: 1, sequence }, [{ type: 'text_delta', body }], never)
    const damage = (sequence: number) =>
      database.prepare(`UPDATE log_records SET body = 'other' WHERE sequence = ?`).run(sequence)
    for (const sequence of [1, 2]) await append(sequence, 'body')
    await eventLog.archiveSegment(log, async () => {}, never)
    for (const sequence of [3, 4, 5]) await append(sequence, 'body')
    await checkLog(eventLog, log, never)
    damage(1)
    await checkLog(eventLog, log, never)
    damage(4)
    await checkLog(eventLog, log, never, 3)
    await checkLog(eventLog, log, never, 1)
    await expect(checkLog(eventLog, log, never)).rejects.toMatchObject({
      code: 'data_loss',
      detail: { sequence: 4 },
    })
  } finally {
    database.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
