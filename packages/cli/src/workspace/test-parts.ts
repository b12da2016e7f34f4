import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { ReadWorkspaceResponseSchema, type ReadWorkspaceResponse } from '@tutti/proto'

export type Entry = readonly [path: string, mode: '100644' | '120000', content: string]

/** For tests: what a server says of a workspace, also what none of ours does. */
export async function* testParts(...entries: readonly Entry[]): AsyncGenerator<ReadWorkspaceResponse> {
  for (const [path, mode, content] of entries) {
    const size = BigInt(content.length)
    yield said({ case: 'entry', value: { path: Buffer.from(path), mode, size } })
    yield said({ case: 'content', value: Buffer.from(content) })
  }
  yield said({ case: 'summary', value: {} })
}

const said = (part: NonNullable<MessageInitShape<typeof ReadWorkspaceResponseSchema>['part']>) =>
  create(ReadWorkspaceResponseSchema, { part })
