import { Button } from './controls';
import type { Column } from './show';

/** The last column of a table whose rows can be changed. */
export const changeColumn = <R,>(change: (row: R) => void): Column<R> => ({
  key: 'change',
  header: <span className="hidden-visually">Change</span>,
  right: true,
  cell: (row) => (
    <Button className="small" variant="quiet" onPress={() => change(row)}>
      Change
    </Button>
  ),
});
