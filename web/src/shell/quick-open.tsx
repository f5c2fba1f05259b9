/** Goes anywhere by name: pages, sites, a job by its number. */
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import {
  Dialog as AriaDialog,
  Autocomplete,
  Input,
  Label,
  Menu,
  MenuItem,
  Modal,
  ModalOverlay,
  SearchField,
} from 'react-aria-components';
import { useQuery } from 'urql';
import { usePlaces } from './places';
import { QuickOpenDocument } from './shell.gql';

export function QuickOpen({ open, onClose }: { open: boolean; onClose(): void }) {
  return (
    <ModalOverlay
      className="overlay quick-overlay"
      isOpen={open}
      onOpenChange={(is) => {
        if (!is) onClose();
      }}
      isDismissable
    >
      <Modal className="modal quick">
        <AriaDialog aria-label="Go to" className="dialog">
          <Search onClose={onClose} />
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

const SHOWN = 12;

function Search({ onClose }: { onClose(): void }) {
  const sections = usePlaces();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const [{ data }] = useQuery({ query: QuickOpenDocument });
  const wanted = text.trim().toLowerCase();

  const entries: { id: string; label: string; kind: string; go(): void }[] = [];
  for (const { places } of [
    ...sections,
    { places: [{ to: '/submit', label: 'Submit a job', page: undefined }] },
  ]) {
    for (const { to, label, page } of places) {
      if (!label.toLowerCase().includes(wanted)) continue;
      entries.push({
        id: to,
        label,
        kind: 'Page',
        go: () => (page ? location.assign(to) : void navigate({ to })),
      });
    }
  }
  for (const { id, name } of data?.sites.nodes ?? []) {
    if (!name.toLowerCase().includes(wanted)) continue;
    entries.push({
      id,
      label: name,
      kind: 'Site',
      go: () => void navigate({ to: '/sites/$id', params: { id } }),
    });
  }
  const begins = (label: string): number => Number(label.toLowerCase().startsWith(wanted));
  entries.sort((a, b) => begins(b.label) - begins(a.label));
  const job = /^(?:job[_ ]?)?(\d{1,15})$/.exec(wanted)?.[1];
  if (job) {
    entries.unshift({
      id: `job_${job}`,
      label: `Job ${job}`,
      kind: 'Job',
      go: () => void navigate({ to: '/jobs/$id', params: { id: `job_${job}` } }),
    });
  } else if (wanted !== '') {
    entries.push({
      id: 'application',
      label: `Jobs of the application “${text.trim()}”`,
      kind: 'Filter',
      go: () => void navigate({ to: '/jobs', search: { application: text.trim() } }),
    });
  }

  return (
    <Autocomplete inputValue={text} onInputChange={setText}>
      <SearchField className="quick-field" autoFocus>
        <Label className="hidden-visually">Page, site, or number of a job</Label>
        <Input placeholder="Page, site, or number of a job" />
      </SearchField>
      <Menu
        className="listbox quick-list"
        aria-label="Places"
        items={entries.slice(0, SHOWN)}
        renderEmptyState={() => <p className="table-empty">Nothing with this name.</p>}
        onAction={(id) => {
          onClose();
          entries.find((entry) => entry.id === id)?.go();
        }}
      >
        {(entry) => (
          <MenuItem id={entry.id} className="option" textValue={entry.label}>
            <span>{entry.label}</span>
            <small>{entry.kind}</small>
          </MenuItem>
        )}
      </Menu>
    </Autocomplete>
  );
}
