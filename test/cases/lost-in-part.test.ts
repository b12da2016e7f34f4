import { randomBytes } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ensembleResult } from '@tutti/cli'
import { agentId, ensembleId, initialAgentState, type AgentId, type BlobId } from '@tutti/core'
import { AgentService, BackgroundComposerService, EnsembleService } from '@tutti/proto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

let api: DemoApi
const never = new AbortController().signal
const owner = 'local'
const lost: BlobId = `sha256_${'0'.repeat(64)}`
const gone = `Blob ${lost} is gone; put it back from a backup.`

beforeAll(async () => {
  api = await startDemoApi()
})
afterAll(() => api.close())

const put = (value: object) => api.blobs.put(Buffer.from(JSON.stringify(value)), never)

function agentRow(title: string, configBlobId: BlobId) {
  const bcId = agentId(Date.now(), randomBytes(10))
  const row = { bcId, owner, title, repository: 'demo', agentSpec: 'command:x', configBlobId, createdAt: 5 }
  return { ...row, state: initialAgentState }
}

async function addAgent(title: string, configBlobId: BlobId): Promise<AgentId> {
  const row = agentRow(title, configBlobId)
  await api.store.catalog.agents.insert(row, never)
  await api.store.eventLog.create(row.bcId, owner, never)
  return row.bcId
}

test('an agent whose settings are lost is shown without them, and hides no other', async () => {
  const whole = await addAgent('whole', await put({ ref: 'main', promptSuffix: '' }))
  const partial = await addAgent('partial', lost)
  const missing = `Its settings: ${gone}`
  const { agents } = await api.client(AgentService).listAgents({})
  expect(agents.map(({ bcId, repository, state }) => [bcId, repository?.ref, state?.missing])).toEqual([
    [partial, '', missing],
    [whole, 'main', ''],
  ])
  const { agent } = await api.client(AgentService).getAgent({ bcId: partial })
  expect(agent).toMatchObject({ title: 'partial', agent: { spec: 'command:x' }, state: { missing } })

  const { composers } = await api.client(BackgroundComposerService).listBackgroundComposers({})
  expect(composers.map(({ bcId, tutti }) => [bcId, tutti?.missing])).toEqual([
    [partial, missing],
    [whole, ''],
  ])
  const saved = { blobId: lost, offsetKey: 'o', savedAt: 3, status: 'IDLE', version: 1 } as const
  await api.store.catalog.agents.saveState(whole, saved, never)
  const info = await api.client(BackgroundComposerService).getBackgroundComposerInfo({ bcId: whole })
  expect(info).toMatchObject({
    composer: {
      name: 'whole',
      ref: 'main',
      tutti: { missing: `Its state: The stored state ${lost} is gone; the next turn makes it anew.` },
    },
  })
  expect(info).not.toHaveProperty('cloudAgentState')
})

test('settings that the disk does not give now hide no agent either', async () => {
  const settings = await put({ ref: 'unreadable' })
  const place = join(api.dataDir, 'blobs', settings.slice(7, 9), settings)
  await rm(place)
  await mkdir(place)
  const bcId = await addAgent('unreadable', settings)
  const { agents } = await api.client(AgentService).listAgents({ pageSize: 1 })
  const missing = expect.stringMatching(`^Its settings: Blob ${settings} cannot be read .*; look at the disk`)
  expect(agents).toMatchObject([{ bcId, state: { missing } }])
})

test('an ensemble is shown without what is lost of it', async () => {
  const { catalog, eventLog } = api.store
  const id = ensembleId(Date.now(), randomBytes(10))
  const child = { ...agentRow('child', lost), ensembleId: id, childIndex: 0 }
  const row = { ensembleId: id, owner, title: 'Sum', repository: 'demo', strategy: 'best', createdAt: 5 }
  const childIds = [child.bcId]
  await catalog.ensembles.insert({ ...row, configBlobId: lost, childIds }, [child], never)
  await eventLog.create(id, owner, never)
  const end = { logSequence: 1, phase: 'COMPLETED', reason: 'completed', resultBlobId: lost } as const
  await catalog.ensembles.project(id, end, never)
  const { ensemble } = await api.client(EnsembleService).getEnsemble({ ensembleId: id })
  const missing = `Its settings: ${gone} Its result: ${gone} Its agents' settings: ${gone}`
  expect(ensemble).toMatchObject({
    title: 'Sum',
    reason: 'completed',
    missing,
    spec: { prompt: '', count: 1, strategy: 'best', agents: [{ spec: 'command:x' }] },
    attempts: [{ bcId: child.bcId, agent: 'command:x' }],
  })
  expect(ensembleResult(ensemble!)).toMatchObject({ phase: 'COMPLETED', synthesis: null, missing })
  const { ensembles } = await api.client(EnsembleService).listEnsembles({})
  expect(ensembles).toMatchObject([{ ensembleId: id, title: 'Sum' }])
})
