import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { agentId } from '@tutti/core'
import { createSqliteStore } from '@tutti/store'
import { expect, test } from 'vitest'
import { checkLog, type CheckLogOptions } from './check-log.ts'

const never = new AbortController().signal

test('looks at each record but for those before the beginning, whatever its damage is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-check-'))
  const store = await createSqliteStore({ path: join(folder, 'tutti.db') })
  const database = new DatabaseSync(join(folder, 'tutti.db'))
  try {
    const { eventLog } = store
    const log = agentId(Date.now(), randomBytes(10))
    await eventLog.create(log, 'owner', never)
    for (const sequence of [1, 2, 3, 4, 5])
      await eventLog.append(
        log,
        { id: 'sandbox', epoch: 1, sequence },
        [{ type: 'git_state', body: 'body' }],
        never,
      )
    const check = (options: CheckLogOptions) => checkLog(eventLog, log, options, never)
    const lossOf = (sequence: number) => ({ code: 'data_loss', detail: { sequence } })
    await check({})
    database.exec("UPDATE log_records SET type = 'git_statf' WHERE sequence = 2")
    database.exec("UPDATE log_records SET body = 'other' WHERE sequence = 4")
    await expect(check({})).rejects.toMatchObject(lossOf(2))
    await check({ until: 1 })
    await check({ from: 2, until: 3 })
    await check({ from: 3, until: 1 })
    await expect(check({ from: 2 })).rejects.toMatchObject(lossOf(4))
  } finally {
    database.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
