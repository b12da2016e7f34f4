import { RepositoryService } from '@tutti/proto'
import { createTestRepository, type TestRepository } from '@tutti/testkit'
import { startTestApi, type TestApi } from '@tutti/testkit/test-api'

/** The API under test, with one repository registered as `demo`. */
export interface DemoApi extends TestApi {
  readonly files: TestRepository
}

export async function startDemoApi(...values: Parameters<typeof startTestApi>): Promise<DemoApi> {
  const api = await startTestApi(...values)
  const files = createTestRepository({ 'a.txt': 'a\n' })
  await api.client(RepositoryService).addRepository({ path: files.path, name: 'demo' })
  return {
    ...api,
    files,
    async close() {
      await api.close()
      files.remove()
    },
  }
}
