import type { TuttiClient } from '@tutti/client'
import { decodeOffset, type RunEvent } from '@tutti/protocol'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'

const temporalPath = inject('temporalServer')

const words = 5200
const readers = 100

/** Says one word after the other in turns of speech and thought, so that none is joined with the next. */
const chatter = `awk 'BEGIN { for (i = 1; i <= ${words}; i++) {
  printf "::tutti:: {\\"type\\":\\"%s_delta\\",\\"text\\":\\"%d \\"}\\n", i % 2 ? "text" : "thinking", i
  if (i % 100 == 0) { fflush(); system("sleep 0.1") }
} }'
`

describe.skipIf(!temporalPath)('STR-08 from stored to live without a seam', { timeout: 240_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let agent: AgentDriver

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath! })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ 'chatter.sh': chatter })
    agent = await startAgent(client, {
      prompt: 'talk',
      repository: repository.path,
      agent: 'command:sh chatter.sh',
    })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  /** Reads the log to its end and tells where that is; what is noted behind it is not waited for. @throws Error at the first event that is missing, doubled or out of order. */
  async function read(onWord?: (word: number) => void): Promise<{ end: number; words: number }> {
    let events = 0
    const seen = { end: 0, words: 0 }
    const { bcId } = agent
    for await (const { offsetKey, eventJson } of client.agents.streamAgentEvents({ bcId, follow: true })) {
      if (!eventJson) continue
      const number = decodeOffset(bcId as Parameters<typeof decodeOffset>[0], offsetKey)
      if (number !== events + 1) throw new Error(`event ${number} after ${events}`)
      events = number
      const event = JSON.parse(eventJson) as RunEvent
      if (event.type === 'status' && event.status === 'IDLE') seen.end = number
      if (event.type !== 'text_delta' && event.type !== 'thinking_delta') continue
      for (const word of event.text.trim().split(' ')) {
        if (Number(word) !== seen.words + 1) throw new Error(`word ${word} after ${seen.words}`)
        seen.words += 1
        onWord?.(seen.words)
      }
    }
    return seen
  }

  test('STR-08 100 readers that join a live log of more than 5,000 events at any moment read 1..N', async () => {
    const joined: ReturnType<typeof read>[] = []
    const moments: number[] = []
    // The first reader calls the others: one for each hundredth of the words, somewhere inside it.
    const first = await read((word) => {
      const due = Math.floor(((joined.length + Math.random()) * words) / readers)
      if (joined.length >= readers || word < due) return
      joined.push(read())
      moments.push(word)
    })
    while (joined.length < readers) joined.push(read())
    const all = await Promise.all(joined)
    const cut = (await agent.events()).filter(
      (event) => event.type === 'turn_interrupted' || event.type === 'sandbox',
    )
    expect(cut.map((event) => ('state' in event ? event.state : event.type))).toEqual([
      'creating',
      'hydrating',
      'ready',
    ])
    expect(first.words).toBe(words)
    expect(first.end).toBeGreaterThan(5000)
    expect(moments.length).toBeGreaterThan(readers / 2)
    expect(all).toEqual(Array.from({ length: readers }, () => first))
  })
})
