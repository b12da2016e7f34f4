import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { inject } from 'vitest'
import { startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { script } from './script.ts'

/** A stack that runs, with a repository for its agents. */
export interface RunningStack {
  readonly stack: TuttiStack
  readonly client: TuttiClient
  readonly repository: TestRepository
  /** An agent of the repository that does what these lines of a script say. */
  start(...lines: readonly string[]): Promise<AgentDriver>
  /** For `beforeAll` to return. */
  remove(): Promise<void>
}

export async function runStack(
  env: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = { 'README.md': 'hello\n' },
): Promise<RunningStack> {
  const stack = await createTuttiStack({ temporalPath: inject('temporalServer')!, env })
  await stack.start().catch(async (thrown: unknown) => {
    await stack.remove()
    throw thrown
  })
  const client = connect(stack)
  const repository = createTestRepository(files)
  return {
    stack,
    client,
    repository,
    start: (...lines) =>
      startAgent(client, {
        prompt: script(...lines),
        repository: repository.path,
        agent: 'embedded:scripted',
      }),
    async remove() {
      await stack.remove()
      repository.remove()
    },
  }
}
